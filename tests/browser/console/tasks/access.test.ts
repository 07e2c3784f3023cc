// Tasks with services, keys, people, mail, webhooks and messages, on one platform. Those with services come first: they need a
// project.
import { after } from "node:test";
import { endInstallation } from "../installation.ts";
import "./operation.ts";
import "./keys.ts";
import "./people.ts";
import "./deliveries.ts";
import "./messaging.ts";

after(endInstallation);
