// Turns at a few places that many tenants share.
export { FairTurns, TurnRefusal, type FairTurnsOptions } from "./fair-turns.ts";
