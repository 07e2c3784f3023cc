// Roles, rights, scopes, and what clients and services may do, in one process.
import "./rbac.ts";
import "./scope-roles.ts";
import "./escalation.ts";
import "./audience.ts";
import "./clients.ts";
import "./services.ts";
