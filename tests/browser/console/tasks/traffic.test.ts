// Tasks with mail, webhooks and messages, on one platform.
import { after } from "node:test";
import { endInstallation } from "../installation.ts";
import "./deliveries.ts";
import "./messaging.ts";

after(endInstallation);
