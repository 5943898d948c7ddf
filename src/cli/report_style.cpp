#include "cli/report_style.h"

namespace reckon::cli {

const std::string_view kReportStyle = R"css(
:root{color-scheme:light dark;--back:#fbfbf9;--panel:#fff;--text:#1c2127;--soft:#5a646e;--rule:#dfe3e7;--accent:#1f5fa8;--band:#1f5fa81f;--good:#17713f;--bad:#a8321f;--note:#7a5200;--note-back:#fdf5e0}
@media(prefers-color-scheme:dark){:root{--back:#14171a;--panel:#1b1f24;--text:#e4e7ea;--soft:#9aa5b0;--rule:#2f363d;--accent:#79b0f2;--band:#79b0f22e;--good:#63cf94;--bad:#ff9483;--note:#f0c766;--note-back:#2b2514}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-variant-numeric:tabular-nums}
header,main,footer{max-width:1160px;margin:0 auto;padding:0 20px}
header{padding-top:14px;padding-bottom:10px}
header nav{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:13px}
header nav a{overflow-wrap:anywhere}
.home{font-weight:600}
a{color:var(--accent);text-decoration:none}
a:hover,a:focus-visible{text-decoration:underline}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.skip{position:absolute;left:-999px}
.skip:focus{left:8px;top:8px;background:var(--panel);padding:6px 10px;z-index:2}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
h1{font-size:24px;line-height:1.25;margin:10px 0 6px;text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:16px;margin:0 0 10px}
h3{font-size:13px;margin:14px 0 6px;color:var(--soft);font-weight:600}
p{margin:6px 0}
code,pre,.diff{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.87em}
code{overflow-wrap:anywhere}
a>code,time{white-space:nowrap}
pre{margin:6px 0;padding:10px 12px;background:var(--back);border:1px solid var(--rule);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere}
section{background:var(--panel);border:1px solid var(--rule);border-radius:8px;padding:16px 18px;margin:14px 0;min-width:0}
.arms{color:var(--soft)}
.verdict{font-size:17px}
.quality{border-left:3px solid var(--accent);padding-left:10px}
.none{color:var(--soft)}
.badge{display:inline-block;padding:0 7px;border:1px solid currentColor;border-radius:4px;font-weight:650;font-size:12.5px;line-height:20px;letter-spacing:.02em;color:var(--soft);white-space:nowrap}
.won{color:var(--good)}.lost,.broke,.out-of-memory{color:var(--bad)}
.badge.reported{border-style:dashed}
.badge.overturned{text-decoration:line-through}
.marked{font-size:12px;color:var(--soft);white-space:nowrap}
.notices{list-style:none;margin:12px 0 0;padding:0}
.notices li{background:var(--note-back);color:var(--note);border-radius:6px;padding:6px 12px;margin:4px 0}
.split,.even{display:grid;grid-template-columns:minmax(0,1.6fr) minmax(0,1fr);gap:0 14px;align-items:start}
.even{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}
@media(max-width:860px){.split,.even{display:block}}
figure{margin:0;max-width:860px}
figcaption,.range,.twin{color:var(--soft);font-size:13px}
.plot{display:block;overflow:visible}
.plot text{font-size:12px;fill:var(--soft)}
.tick{text-anchor:end}.column,.value{text-anchor:middle}
.plot text.value{fill:var(--text)}.plot text.strong{font-weight:650}
.band{fill:var(--band)}
.grid{stroke:var(--rule)}.zero{stroke:var(--soft)}.divide{stroke:var(--soft);stroke-dasharray:1 3}
.claim{stroke:var(--text);stroke-dasharray:6 4}
.round{stroke:var(--accent);stroke-width:2.5}.late{stroke-dasharray:2 3}
.pair{fill:var(--accent);stroke:var(--accent);stroke-width:1.5}.hollow{fill:var(--panel)}
.interval{stroke:var(--text);stroke-width:2}.effect{fill:var(--text)}.mark{overflow:visible}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:8px 0;padding:0;font-size:13px}
.key{vertical-align:-2px;margin-right:6px}
dl{margin:0;display:grid;gap:6px}
dl>div{display:grid;grid-template-columns:150px minmax(0,1fr);gap:0 12px}
dt{color:var(--soft);overflow-wrap:anywhere}
dd{margin:0;overflow-wrap:anywhere}
dd ul{margin:0;padding-left:18px}
#why dl>div{display:block}
#numbers dl>div{grid-template-columns:110px minmax(0,1fr)}
.scroll{overflow-x:auto;margin:8px 0}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:5px 10px 5px 0;border-bottom:1px solid var(--rule);font-weight:400}
thead th{color:var(--soft);font-size:13px;white-space:nowrap}
.n{text-align:right;white-space:nowrap}
.entries .marked{display:block}
.counts th,.counts td{padding-right:14px}.counts .n{width:1%}
tbody tr:last-child>*{border-bottom:0}
.zero{color:var(--rule)}
.idea code{display:block;color:var(--soft)}
.day{white-space:nowrap}
.entries td:nth-child(4),.entries td:nth-child(5){color:var(--soft);font-size:13px}
.diff{list-style:none;margin:0;padding:0}
.diff li{padding-left:1.4em;text-indent:-1.4em}
.diff b{display:inline-block;width:1.4em;text-indent:0}
.diff code{font-size:1em}
.minus b{color:var(--bad)}.plus b{color:var(--good)}.side b{color:var(--note)}
#memory th{white-space:nowrap}
.bar{display:block;min-width:90px;margin-top:7px}
.bar .base{fill:var(--soft)}.bar .arm{fill:var(--accent)}.bar .limit{fill:none;stroke:var(--text)}
details{margin:8px 0}
summary{cursor:pointer;color:var(--accent)}
.chips,.pager{display:flex;flex-wrap:wrap;gap:6px;margin:12px 0}
.chip{border:1px solid var(--rule);border-radius:999px;padding:1px 11px;background:var(--panel);font-size:13.5px}
.chip .count{color:var(--soft);margin-left:2px}
[aria-current]{border-color:currentColor;font-weight:650;text-decoration:underline}
.pager>*{padding:0 6px}
#search-form{display:flex;flex-wrap:wrap;gap:6px;align-items:center;margin:12px 0}
#search-form[hidden]{display:none}
input,select{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--rule);border-radius:6px;padding:4px 8px;max-width:100%}
input{flex:1 1 220px}
select{flex:0 1 150px;width:150px;min-width:0}
output{flex:1 0 100%;color:var(--soft);font-size:13px}
footer{padding-top:8px;padding-bottom:30px;color:var(--soft);font-size:13px}
@media(max-width:640px){
header,main,footer{padding-left:14px;padding-right:14px}
section{padding:14px 12px}
h1{font-size:20px}.verdict{font-size:16px}
dl>div,#numbers dl>div{grid-template-columns:96px minmax(0,1fr)}dt{font-size:13px;line-height:22px}
.scroll table{font-size:13px}.scroll th,.scroll td{padding-right:6px}
#memory .n{white-space:normal}
.entries .marked{display:inline}
.entries thead{display:none}
.entries tr{display:grid;grid-template-columns:1fr auto;gap:0 10px;padding:8px 0;border-bottom:1px solid var(--rule)}
.entries td{border:0;padding:0;min-width:0}
.entries .idea{grid-column:1/-1;padding:2px 0}
.entries td:nth-child(4),.entries td:nth-child(5){grid-column:1;color:var(--soft);font-size:13px}
.entries .day{grid-column:2;grid-row:3;color:var(--soft);font-size:13px}
}
@media print{
:root{color-scheme:light;--back:#fff;--panel:#fff;--text:#000;--soft:#444;--rule:#bbb;--accent:#123f77;--band:#0000001c;--good:#0a5a2d;--bad:#8a1f10;--note:#000;--note-back:#fff}
body{font-size:10.5pt}
header nav,.chips,.pager,#search-form,.skip{display:none}
main,footer{max-width:none;padding:0}
section{border:0;border-top:1px solid var(--rule);border-radius:0;padding:8px 0;margin:6px 0}
figure,tr,li,dl>div,#why,#numbers,#tokens,#memory,#reproduce{break-inside:avoid}
#reproduce details::details-content{content-visibility:visible;height:auto}
h2,h3{break-after:avoid}
.notices li{border:1px solid var(--rule)}
.scroll{overflow:visible}
a{color:inherit}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
)css";

const std::string_view kSearchScript = R"js(
"use strict";
const field=name=>document.getElementById(name);
const form=field("search-form"),results=field("results"),found=field("found");
const cuts=[["verdict",1],["switch",7],["model",8],["device",9]];
const most=200;
let entries=null,loading=false;
function node(tag,text,style){const made=document.createElement(tag);if(text)made.textContent=text;if(style)made.className=style;return made}
function row(entry){
const line=node("tr"),verdict=node("td"),idea=node("td","","idea"),to=node("a",entry[5]);
verdict.append(node("span",entry[2],"badge "+entry[1].toLowerCase()+" "+entry[2].toLowerCase())," ",node("span",entry[3],"marked"));
to.href="entries/"+entry[0]+".html";idea.append(to,node("code",entry[6]));
line.append(verdict,node("td",entry[4],"n"),idea,node("td",entry[8]),node("td",entry[9]),node("td",entry[10],"day"));
return line}
function wanted(){
const words=field("search").value.toLowerCase().split(/\s+/).filter(word=>word);
const chosen=cuts.map(([name,at])=>[at,field("search-"+name).value]).filter(([,value])=>value);
return words.length||chosen.length?{words,chosen}:null}
function show(){
const want=wanted();results.replaceChildren();found.textContent="";
if(!want||!entries)return;
const hits=entries.filter(entry=>want.chosen.every(([at,value])=>entry[at]===value)&&want.words.every(word=>entry.some(text=>text.toLowerCase().includes(word))));
found.textContent=hits.length+(hits.length===1?" entry":" entries")+(hits.length>most?", the newest "+most+" shown":"");
const table=node("table","","entries"),body=node("tbody");
body.append(...hits.slice(0,most).map(row));table.append(body);
const box=node("section");box.append(table);if(hits.length)results.append(box)}
function fill(){
for(const[name,at]of cuts){const choice=field("search-"+name),kept=choice.value;
const values=[...new Set(entries.map(entry=>entry[at]))].sort();
choice.replaceChildren(new Option("any "+name,""),...values.map(value=>new Option(value,value)));choice.value=kept}}
window.reckonEntries=list=>{entries=list;fill();show()};
function load(){if(loading)return;loading=true;const script=node("script");script.src="search.js";document.head.append(script)}
for(const[name]of cuts)field("search-"+name).append(new Option("any "+name,""));
form.hidden=false;
form.addEventListener("focusin",load);form.addEventListener("input",()=>{load();show()});
form.addEventListener("submit",event=>event.preventDefault());
)js";

}  // namespace reckon::cli
