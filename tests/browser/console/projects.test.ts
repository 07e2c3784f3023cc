// Projects: their data, API, applications, addresses and traces, and the tasks of their authors, on one platform.
import { after } from "node:test";
import { endInstallation } from "./installation.ts";
import "./project-pages.ts";
import "./addresses.ts";
import "./applications.ts";
import "./traces.ts";
import "./try.ts";
import "./models.ts";
import "./tasks/authors.ts";

after(endInstallation);
