// Hostile text in all services but mail alone, on one platform. Services come first: they need a project.
import { after } from "node:test";
import { endInstallation } from "../installation.ts";
import "./services.ts";
import "./traffic.ts";

after(endInstallation);
