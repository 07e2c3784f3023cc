// Secrets that sign requests to a target. After a rotation the previous one also signs for 24 hours.
import { randomBytes } from "node:crypto";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import type { WebhookRow } from "../database/webhook.ts";
import { toPlace } from "../database/secrets.ts";
import { SECRET_PREFIX } from "./signature.ts";

/** Options of {@link SigningSecrets}. */
export interface SigningSecretsOptions {
  box: SecretBox;
  clock: Clock;
  /** Table of the targets. */
  table: "notify_webhooks" | "notify_inbound_rules";
}

/** Columns of a target. */
type SecretColumns = Pick<WebhookRow, "secret" | "previous_secret" | "previous_until">;

/** A new secret, to be shown once, and the columns that keep it. */
export interface NewSecret {
  secret: string;
  columns: SecretColumns;
}

type SignedTarget = SecretColumns & { id: string };

const SECRET_BYTES = 32;
const ROTATION_MS = 24 * 3_600_000;

/** Creates, rotates and opens the secrets of the targets of a table. */
export class SigningSecrets {
  readonly #options: SigningSecretsOptions;

  constructor(options: SigningSecretsOptions) {
    this.#options = options;
  }

  /** Creates the secret of a new target: `whsec_` and base64. */
  create(id: string): NewSecret {
    const secret = SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64");
    const sealed = this.#options.box.seal(secret, this.#placeOf(id));
    return { secret, columns: { secret: sealed, previous_secret: null, previous_until: null } };
  }

  /** Creates the next secret of a target. */
  rotate(target: SignedTarget): NewSecret {
    const { secret, columns } = this.create(target.id);
    const until = this.#options.clock.now() + ROTATION_MS;
    const previous = { previous_secret: target.secret, previous_until: until };
    return { secret, columns: { ...columns, ...previous } };
  }

  /** Returns the secrets that sign now. Throws if one was changed in the database. */
  list({ id, secret, previous_secret: previous, previous_until: until }: SignedTarget): string[] {
    const { box, clock } = this.#options;
    const isRotating = previous !== null && (until ?? 0) > clock.now();
    const sealed = isRotating ? [secret, previous] : [secret];
    return sealed.map((one) => box.open(one, this.#placeOf(id)));
  }

  #placeOf(id: string): string {
    return toPlace(`${this.#options.table}.secret`, id);
  }
}
