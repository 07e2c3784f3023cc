// Services of a running platform with each other, with Prometheus and with a tunnel, and the commands of operators, on one
// platform. The admin feeds come first: they require one without conditions; the commands come last: they stop it.
import { after } from "node:test";
import { endPlatform } from "./running-platform.ts";
import "./admin-feeds.ts";
import "./dashboard.ts";
import "./mail.ts";
import "./share.ts";
import "./events.ts";
import "./commands.ts";

after(endPlatform);
