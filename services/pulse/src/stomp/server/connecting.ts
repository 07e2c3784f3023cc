// CONNECT: version, credentials, heart-beats.
import { randomUUID } from "node:crypto";
import type { Transport } from "../../connection/transport.ts";
import type { Principal } from "../../user/principal.ts";
import type { Frame, Header } from "../frame/frame.ts";
import { StompError } from "../frame/stomp-error.ts";
import { chooseVersion, type StompVersion } from "../frame/version.ts";
import { negotiateHeartBeat, SERVER_HEART_BEAT, type HeartBeat } from "../heart-beat.ts";
import type { ConnectionContext } from "./connection-context.ts";

const SERVER = "platform-pulse";
const CLIENT_ID_CHARS_MAX = 128;

/** An accepted client. */
export interface Accepted {
  version: StompVersion;
  principal: Principal;
  clientId: string | undefined;
  heartBeat: HeartBeat;
  /** The headers of CONNECTED. */
  headers: Header[];
  /** Must be called when the connection has closed. */
  release: () => void;
}

/** Handles the first frame. Throws a `StompError`. */
export async function acceptClient(
  { users, authenticate }: ConnectionContext,
  transport: Transport,
  { command, headers }: Frame,
): Promise<Accepted> {
  if (command !== "CONNECT" && command !== "STOMP") {
    throw new StompError("invalid", "the first frame must be CONNECT or STOMP");
  }
  const version = chooseVersion(headers.get("accept-version"));
  if (version === undefined) {
    throw new StompError(
      "unsupported-version",
      "none of the versions in accept-version is supported: 1.0, 1.1 and 1.2 are",
    );
  }
  // 1.0 has no heart-beats.
  const heartBeat = negotiateHeartBeat(version === "1.0" ? undefined : headers.get("heart-beat"));
  const clientId = readClientId(headers.get("client-id"));
  const principal = await authenticate(transport, headers.get("login"), headers.get("passcode"));
  if (principal === undefined) {
    throw new StompError("unauthenticated", "the login or the passcode is wrong");
  }
  const release = users.admit(principal);
  if (release === undefined) throw new StompError("refused", "the user has too many connections");
  return {
    version,
    principal,
    clientId,
    heartBeat,
    headers: listHeaders(version),
    release,
  };
}

function readClientId(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= CLIENT_ID_CHARS_MAX) return text;
  throw new StompError("too-large", `client-id has ${CLIENT_ID_CHARS_MAX} characters at most`);
}

function listHeaders(version: StompVersion): Header[] {
  const session: Header = ["session", randomUUID()];
  if (version === "1.0") return [session];
  return [["version", version], session, ["server", SERVER], ["heart-beat", SERVER_HEART_BEAT]];
}
