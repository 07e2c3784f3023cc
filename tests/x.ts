import { Stage } from "./stage/stage.ts";
import { connect } from "node:net"; import { readdirSync } from "node:fs"; import { once } from "node:events";
const sleep=(ms:number)=>new Promise(r=>setTimeout(r,ms));
await using s = new Stage();
const u = await s.startUpstream("a");
const g = await s.startGateway([{prefix:"/",target:u.url}],{workers:1, upstream_keep_alive_timeout_ms:1000},{PLATFORM_RUNTIME:process.argv[2]??"node"});
const fds=()=>readdirSync(`/proc/${g.process.pid}/fd`).length;
const host=`Host: 127.0.0.1:${g.port}\r\n`;
console.log("start",fds());
for (const pause of [-1,0,1,3,10,30]) for (const [n,r] of Object.entries({cl:`POST /echo HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\nhalf`, chunked:`POST /echo HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`, cl0:`POST /echo HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\n`, get:`GET /stream?chunks=10000&ms=50 HTTP/1.1\r\n${host}\r\n`, exp:`POST /echo HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n`})) {
  const before=fds();
  await Promise.all(Array.from({length:40},async()=>{ const c=connect(g.port,"127.0.0.1"); c.on("error",()=>{}); await once(c,"connect"); c.write(r); if(pause>=0) await sleep(pause); c.end(); c.destroySoon(); }));
  await sleep(4000);
  console.log(pause,n,fds()-before);
}
