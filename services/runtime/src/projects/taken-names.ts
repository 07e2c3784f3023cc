// Names that a project cannot have: of services, and of hosts that the platform serves.
import { SERVICES } from "../services/index.ts";

export const TAKEN_NAMES: readonly string[] = [
  ...SERVICES.flatMap(({ name, label, routes }) => [
    name,
    label,
    ...routes.flatMap(({ subdomain }) => subdomain ?? []),
  ]),
  "console",
  "platform",
  "runtime",
];
