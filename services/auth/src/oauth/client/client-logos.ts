// Logos of clients, which administrators upload.
//
// `logo_uri` of the metadata is never fetched. Browsers that loaded it would tell the client's host who is about to sign
// in. If the service fetched it, clients that register themselves could choose the logo of another application for
// their consent page, and the service's network address for their requests.
import { createHash } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { ClientLogoRow } from "../../database/oauth.ts";
import type { AuthDatabase } from "../../database/schema.ts";
import { readRaster } from "../../web/image.ts";

/** Maximum size of a logo. */
export const LOGO_BYTES_MAX = 65_536;
// Browsers decode the whole picture: a small file can have gigapixels.
const PIXELS_MAX = 1_024;
const HASH = /^[0-9a-f]{64}$/;

/** A stored logo. */
export type ClientLogo = Pick<ClientLogoRow, "type" | "content">;

/** Stores logos. */
export class ClientLogos {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;

  constructor({ database, clock }: { database: AuthDatabase; clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Stores the logo of an existing client. Throws 400 for anything but a small PNG or JPEG. */
  async set(clientId: string, content: Buffer): Promise<void> {
    const raster = content.length > LOGO_BYTES_MAX ? undefined : readRaster(content);
    if (raster === undefined) {
      throw new PlatformError(
        "validation_failed",
        `image: must be a PNG or JPEG of at most ${LOGO_BYTES_MAX} bytes`,
      );
    }
    const { type, width, height } = raster;
    if (Math.max(width, height) > PIXELS_MAX || Math.min(width, height) === 0) {
      throw new PlatformError(
        "validation_failed",
        `image: has ${width} × ${height} pixels, at most ${PIXELS_MAX} × ${PIXELS_MAX} are allowed`,
      );
    }
    const hash = createHash("sha256").update(content).digest("hex");
    const changes = { hash, type, content, updated_at: this.#clock.now() };
    await this.#database.db
      .insertInto("auth_oauth_client_logos")
      .values({ client_id: clientId, ...changes })
      .onConflict((conflict) => conflict.column("client_id").doUpdateSet(changes))
      .execute();
  }

  /** False if the client has no logo. */
  async remove(clientId: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("auth_oauth_client_logos")
      .where("client_id", "=", clientId)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Client id → hash of its logo, for those of the clients that have one. */
  async findHashes(clientIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (clientIds.length === 0) return new Map();
    const rows = await this.#database.db
      .selectFrom("auth_oauth_client_logos")
      .select(["client_id", "hash"])
      .where("client_id", "in", clientIds)
      .execute();
    return new Map(rows.map((row) => [row.client_id, row.hash]));
  }

  /** The logo of a client; undefined if it has none. */
  async readOf(clientId: string): Promise<ClientLogo | undefined> {
    return this.#database.db
      .selectFrom("auth_oauth_client_logos")
      .select(["type", "content"])
      .where("client_id", "=", clientId)
      .executeTakeFirst();
  }

  /** The logo with this hash. */
  async read(hash: string): Promise<ClientLogo | undefined> {
    if (!HASH.test(hash)) return undefined;
    return this.#database.db
      .selectFrom("auth_oauth_client_logos")
      .select(["type", "content"])
      .where("hash", "=", hash)
      .limit(1)
      .executeTakeFirst();
  }
}
