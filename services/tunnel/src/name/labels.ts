// Labels below the relay's domain: allowed, reserved and generated ones.
import { randomInt } from "node:crypto";

// Names of the platform, of mail and certificate conventions, and those that visitors would take for the operator's.
const RESERVED = new Set(
  `abuse account accounts admin administrator api app apps assets auth autoconfig autodiscover billing blog cdn
  console dashboard dev dns docs download ftp gate gateway git help hostmaster identity imap info internal isatap login
  localhost mail mta-sts mx news noc noreply notify ns ns1 ns2 oidc operator payment payments ping platform pop pop3
  postmaster private proxy public pulse root s3 secure security server share sign-in signin smtp sso static stats status
  support system test tunnel tunnels ui uploads vault vpn web webmail webmaster wpad www ws`.split(
    /\s+/,
  ),
);

const ADJECTIVES =
  `amber azure bold brave bright brisk calm clear clever cool coral crisp deep eager early fair fast
  fine fresh gentle glad gold grand green happy ivory jolly keen kind lively lucky mellow mild misty neat nimble noble
  olive pale plain polar proud quick quiet rapid rare red rosy royal ruby rustic sandy sharp shiny silent silver sleek
  smart snowy soft solar solid spicy steady still sunny sweet swift tidy tiny vivid warm wild wise witty young`.split(
    /\s+/,
  );

const NOUNS =
  `acorn anchor apple aspen badger bay beach bear birch bird bloom brook canyon cedar cliff cloud clover
  comet coral cove crane creek daisy dawn deer delta dove dune eagle ember falcon fern field finch fjord forest fox
  garden glade grove harbor hawk hazel heron hill island ivy jay juniper lagoon lake lark leaf lily lotus lynx maple
  marsh meadow moon moss mountain oak ocean orchid otter owl palm panda peak pear pebble pine plum pond poppy quail
  rain raven reef ridge river robin rose sage seal shore sky snow sparrow spring star stone storm stream sun swan
  thistle tiger trail tulip valley violet wave willow wind wolf wood wren`.split(/\s+/);

/** Why a label cannot be used, or undefined. */
export function judgeLabel(label: string): string | undefined {
  if (!/^[a-z0-9-]{1,63}$/.test(label)) {
    return "A subdomain has 1 to 63 lower-case letters, digits and hyphens.";
  }
  if (label.startsWith("-") || label.endsWith("-")) {
    return "A subdomain must not begin or end with a hyphen.";
  }
  // Internationalized names could imitate others (RFC 5891); "??--" is reserved for such encodings (RFC 5890).
  if (label.slice(2, 4) === "--")
    return "A subdomain must not have hyphens in its third and fourth place.";
  if (RESERVED.has(label)) return `The subdomain ${label} is reserved.`;
  return undefined;
}

/** A random label: two words and a number, one of about 50 million. */
export function generateLabel(): string {
  const adjective = ADJECTIVES[randomInt(ADJECTIVES.length)]!;
  const noun = NOUNS[randomInt(NOUNS.length)]!;
  return `${adjective}-${noun}-${randomInt(1_000, 10_000)}`;
}
