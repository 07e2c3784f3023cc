// Sessions and their end, the console's lists, and requests that race, in one process.
import "./sessions.ts";
import "./revocation.ts";
import "./console.ts";
import "./console-lists.ts";
import "./races.ts";
