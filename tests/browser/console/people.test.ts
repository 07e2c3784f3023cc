// Topics of tenants, identity's pages, the gateway's log and cache, what a person sees whose role is taken, and the ways into
// and out of the console, on one platform.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./tenants.ts";
import "./identity.ts";
import "./gateway-traffic.ts";
import "./revoked.ts";
import "./sign-in.ts";

after(endInstallation);
