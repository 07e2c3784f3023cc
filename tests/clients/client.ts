// Interface of real clients and servers: version, exercise.
import type { RouteDocument, Stage, StagedGateway } from "../stage/stage.ts";

/** A gateway with `upstream-server.ts` at `/`, and a stage for more processes. */
export interface Scene {
  stage: Stage;
  gateway: StagedGateway;
  /** Creates a route by API. */
  addRoute: (route: RouteDocument) => Promise<void>;
}

/** An entry of the table. */
export interface RealClient {
  name: string;
  /** Position: clients are in front of the gateway, servers behind it. */
  side: "in front" | "behind";
  /** Debian package; undefined for npm packages. */
  debianPackage?: string;
  /** Returns the version; undefined if not installed. */
  readVersion(): string | undefined;
  /** Tested features, as a phrase for the table. */
  shows: string;
  /** Runs the exercise; throws if something is wrong. */
  exercise(scene: Scene): Promise<void>;
}
