// A passkey authenticator in software, for tests: ES256, user verified, "none" attestation (WebAuthn level 3).
import {
  createHash,
  createSign,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
} from "node:crypto";

/** Deviations of a response, for tests of rejections. */
export interface Flaws {
  origin?: string;
  challenge?: string;
  rpId?: string;
  /** Flags of the authenticator data; default user present and verified. */
  flags?: number;
  counter?: number;
  /** `""` omits it. */
  userHandle?: string;
  type?: string;
  /** Created in a frame of another origin's page. */
  crossOrigin?: boolean;
}

const USER_PRESENT_VERIFIED = 0x05;
const ATTESTED_DATA = 0x40;

/** One credential of one user. */
export class Authenticator {
  readonly id = randomBytes(32);
  readonly #key: KeyObject;
  readonly #publicKey: Buffer;
  readonly #origin: string;
  #counter = 0;
  #userHandle = "";

  constructor(origin: string) {
    this.#origin = origin;
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    // COSE key (RFC 9053 section 2.1): kty EC2, alg ES256, crv P-256, x, y.
    this.#publicKey = Buffer.concat([
      Buffer.from("a5010203262001215820", "hex"),
      Buffer.from(x, "base64url"),
      Buffer.from("225820", "hex"),
      Buffer.from(y, "base64url"),
    ]);
  }

  /** The result of `navigator.credentials.create`. */
  create(
    publicKey: { challenge: string; rp: { id?: string }; user: { id: string } },
    flaws: Flaws = {},
  ) {
    this.#userHandle = publicKey.user.id;
    const authData = Buffer.concat([
      this.#header(
        publicKey.rp.id ?? "",
        (flaws.flags ?? USER_PRESENT_VERIFIED) | ATTESTED_DATA,
        flaws,
      ),
      Buffer.alloc(16),
      Buffer.from([0, this.id.length]),
      this.id,
      this.#publicKey,
    ]);
    // {"fmt": "none", "attStmt": {}, "authData": bytes}
    const attestationObject = Buffer.concat([
      Buffer.from(
        "a363666d74646e6f6e656761747453746d74a06861757468446174615 8".replaceAll(" ", ""),
        "hex",
      ),
      Buffer.from([authData.length]),
      authData,
    ]);
    const id = this.id.toString("base64url");
    return {
      id,
      rawId: id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON: this.#clientData("webauthn.create", publicKey.challenge, flaws),
        attestationObject: attestationObject.toString("base64url"),
        transports: ["internal"],
      },
    };
  }

  /** The result of `navigator.credentials.get`. */
  get(publicKey: { challenge: string; rpId?: string }, flaws: Flaws = {}) {
    this.#counter += 1;
    const authData = this.#header(
      publicKey.rpId ?? "",
      flaws.flags ?? USER_PRESENT_VERIFIED,
      flaws,
    );
    const clientDataJSON = this.#clientData("webauthn.get", publicKey.challenge, flaws);
    const signed = Buffer.concat([authData, sha256(Buffer.from(clientDataJSON, "base64url"))]);
    const id = this.id.toString("base64url");
    return {
      id,
      rawId: id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON,
        authenticatorData: authData.toString("base64url"),
        signature: createSign("sha256").update(signed).sign(this.#key).toString("base64url"),
        ...(flaws.userHandle === "" ? {} : { userHandle: flaws.userHandle ?? this.#userHandle }),
      },
    };
  }

  #header(rpId: string, flags: number, flaws: Flaws): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(flaws.counter ?? this.#counter);
    return Buffer.concat([sha256(Buffer.from(flaws.rpId ?? rpId)), Buffer.from([flags]), counter]);
  }

  #clientData(type: string, challenge: string, flaws: Flaws): string {
    const data = {
      type: flaws.type ?? type,
      challenge: flaws.challenge ?? challenge,
      origin: flaws.origin ?? this.#origin,
      crossOrigin: flaws.crossOrigin ?? false,
    };
    return Buffer.from(JSON.stringify(data)).toString("base64url");
  }
}

function sha256(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}
