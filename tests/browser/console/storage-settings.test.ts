// Settings and locks of storage, and tasks with objects, on one platform.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./bucket-settings.ts";
import "./storage-lock.ts";
import "./tasks/storage.ts";

after(endInstallation);
