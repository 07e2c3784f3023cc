// The gateway's log and cache, and the ways into and out of the console, on one platform.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./gateway-traffic.ts";
import "./sign-in.ts";

after(endInstallation);
