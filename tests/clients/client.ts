// What a real client or server is to these tests: found or not, of a version, put to work.
import type { RouteDocument, Stage, StagedGateway } from "../stage/stage.ts";

/** A gateway with `upstream-server.ts` behind `/`, and a stage to start more on. */
export interface Scene {
  stage: Stage;
  gateway: StagedGateway;
  /** Puts a route in through the API. */
  addRoute: (route: RouteDocument) => Promise<void>;
}

/** One entry of the table. */
export interface RealClient {
  name: string;
  /** Where it stands: clients are in front of the gateway, servers behind it. */
  side: "in front" | "behind";
  /** The Debian package that brings it; absent for what npm brings. */
  debianPackage?: string;
  /** Its version; undefined if it is not installed. */
  readVersion(): string | undefined;
  /** What the exercise shows, as a phrase for the table. */
  shows: string;
  /** Puts it to work; throws where something is not as it should be. */
  exercise(scene: Scene): Promise<void>;
}
