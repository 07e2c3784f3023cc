// Storage's own work, long lists, settings, locks, and tasks with objects, on one platform. The work comes first: it counts all
// files of storage.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./storage-work.ts";
import "./storage-list.ts";
import "./bucket-settings.ts";
import "./storage-lock.ts";
import "./tasks/storage.ts";

after(endInstallation);
