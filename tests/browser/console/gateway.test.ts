// The gateway's own console, with one gateway.
import { after } from "node:test";
import { endGateway } from "./gateway-alone.ts";
import "./gateway-routes.ts";
import "./gateway-certificates.ts";
import "./editor.ts";
import "./unsaved.ts";

after(endGateway);
