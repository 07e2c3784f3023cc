// Audiences of access tokens: the platform's services, a resource that the client names (RFC 8707), or userinfo only.
import { PlatformError } from "@platform/kernel/errors";
import { FIRST_PARTY, PLATFORM_AUDIENCE } from "../core/client-metadata.ts";
import { isPlatformClient } from "../core/lifetimes.ts";

const RESOURCE_CHARACTERS_MAX = 512;

/** The client members that determine the audience. */
export type AudienceClient = Readonly<Record<string, unknown>> & { readonly clientId: string };

/** Chooses audiences. */
export class Audiences {
  /** The audience of tokens for the platform's services. */
  readonly platform: string;
  /** The audience of tokens for userinfo, and the default resource. */
  readonly issuer: string;
  /**
   * The resource identifier of the platform's audience, which must be a URI: the audience, prefixed with `urn:` if it
   * is not a URI.
   */
  readonly platformResource: string;

  /**
   * Throws `validation_failed` if the platform's audience equals the issuer: tokens of all clients would be valid for
   * the platform's services.
   */
  constructor(options: { issuer: string; platform: string }) {
    const { issuer, platform } = options;
    if (normalize(platform) === normalize(issuer)) {
      throw new PlatformError(
        "validation_failed",
        `PLATFORM_AUTH_AUDIENCE is ${platform}, the same as the public URL, which is the audience of third-party clients' tokens. Choose another one.`,
      );
    }
    this.issuer = issuer;
    this.platform = platform;
    this.platformResource = URL.canParse(platform) ? platform : `urn:${platform}`;
  }

  /** The audience of a client's token for a resource; `undefined` if the client may not have one. */
  choose(client: AudienceClient, resource: string): string | undefined {
    const isOwn = isPlatformClient(client.clientId) || client[FIRST_PARTY] === true;
    const allowance = client[PLATFORM_AUDIENCE];
    if (resource === this.issuer)
      return isOwn || allowance === "always" ? this.platform : this.issuer;
    if (this.#isPlatform(resource))
      return isOwn || allowance !== undefined ? this.platform : undefined;
    return resource.length <= RESOURCE_CHARACTERS_MAX &&
      normalize(resource) !== normalize(this.issuer)
      ? resource
      : undefined;
  }

  // Compared in normalised form, although services compare audiences character by character.
  #isPlatform(resource: string): boolean {
    const normalized = normalize(resource);
    return (
      normalized === normalize(this.platformResource) || normalized === normalize(this.platform)
    );
  }
}

function normalize(resource: string): string {
  return (URL.canParse(resource) ? new URL(resource).href : resource).toLowerCase();
}
