"""The looks of the HTML report: one style sheet, for light and dark, for screen and paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root{color-scheme:light dark;--ground:#f6f7f9;--card:#fff;--ink:#1c2128;--soft:#57606a;
--line:#d8dee4;--green:#1a7f37;--yellow:#9a6700;--red:#cf222e;--blue:#0a58ca;--code:#f0f2f5}
@media (prefers-color-scheme:dark){:root{--ground:#0d1117;--card:#161b22;--ink:#e6edf3;
--soft:#9198a1;--line:#30363d;--green:#3fb950;--yellow:#d29922;--red:#f85149;--blue:#6cb6ff;
--code:#0d1117}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:2.2rem 0 .7rem}
.soft{color:var(--soft)}
.green{color:var(--green)}.yellow{color:var(--yellow)}.red{color:var(--red)}
.card,details.rule,.cause{background:var(--card);border:1px solid var(--line);border-radius:10px}
.card{display:flex;gap:1.25rem;align-items:center;padding:1.1rem 1.25rem;margin:0 0 .9rem}
.card p{margin:.15rem 0;overflow-wrap:anywhere}
.grade{flex:none;width:5.2rem;height:5.2rem;border-radius:50%;display:grid;place-items:center;
font-size:2rem;font-weight:700;border:6px solid currentcolor}
.cause{border-left:4px solid var(--red);padding:.8rem 1rem;margin:0 0 .6rem}
.cause p{margin:.2rem 0}
details.rule{margin:0 0 .5rem}
details.rule>summary{padding:.6rem .9rem;cursor:pointer;overflow-wrap:anywhere}
details.rule[open]>summary{border-bottom:1px solid var(--line)}
details.group{margin:0 0 .35rem}
details.group>summary{cursor:pointer;padding:.15rem 0}
.id{font-weight:600;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.keyword{font-size:.78rem;font-weight:600;padding:.05rem .45rem;border-radius:99px;
border:1px solid currentcolor;margin:0 .3rem}
dl{display:grid;grid-template-columns:6.2rem minmax(0,1fr);gap:.35rem .8rem;margin:0;
padding:.8rem .9rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
pre,code{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{margin:0;padding:.5rem .65rem;background:var(--code);border:1px solid var(--line);
border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;background:var(--card)}
th,td{text-align:left;padding:.32rem .6rem;border:1px solid var(--line);vertical-align:top;
overflow-wrap:anywhere}
th{font-weight:600;overflow-wrap:normal}
td.cell,th.cell{text-align:center;white-space:nowrap}
.scroll{overflow-x:auto}
.bar{display:block;height:.6rem;min-width:6rem;border-radius:99px;background:var(--line);
overflow:hidden;margin-top:.45rem}
.bar i{display:block;height:100%;background:currentcolor}
a{color:var(--blue);overflow-wrap:anywhere}
ul{margin:.3rem 0 .8rem;padding-left:1.3rem}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.8rem}
@media (max-width:36rem){.card{flex-direction:column;align-items:flex-start}
dl{grid-template-columns:1fr}}
@media print{body{background:none}main{max-width:none;padding:0}
details.rule{break-inside:avoid}}
"""
