// Sign-ins in Chromium, of a page behind the gateway and at the gateway itself, on one platform.
import { after } from "node:test";
import { endInstallation } from "../browser/console/installation.ts";
import "./application-sign-in.ts";
import "./gateway-sign-in.ts";

after(endInstallation);
