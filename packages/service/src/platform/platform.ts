// The platform at hand: sign-in, objects, messages and mail. Each part is loaded when it is first used.
import { HttpError } from "../error/http-error.ts";
import type { Reply } from "../result/reply.ts";
import { declared } from "../service/declared.ts";
import type { Mail, SendOptions, SentMail } from "./mail.ts";
import type { Message, PublishOptions, SubscribeOptions } from "./messaging.ts";
import type { SignedInUser, SignInOptions, SignInRequest, SignOutOptions } from "./sign-in.ts";
import type {
  DownloadUrlOptions,
  ListOptions,
  ObjectBody,
  ObjectPage,
  PutOptions,
  UrlOptions,
} from "./storage.ts";

const loadSignIn = () => import("./sign-in.ts");
const loadStorage = () => import("./storage.ts");
const loadMessaging = () => import("./messaging.ts");

/**
 * Sign-in by the platform's identity (OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_REDIRECT_URL).
 *
 * ```ts
 * route("GET", "/sign-in", () => auth.signIn());
 * route("GET", "/callback", (request) => auth.finishSignIn(request));
 * route("GET", "/me", (request) => auth.requireUser(request));
 * ```
 */
export const auth = {
  /** False without the variables of identity, for a service that also runs without the platform. */
  get isConfigured(): boolean {
    return declared.settings.oidc_issuer !== undefined;
  },

  /** The answer that sends the browser to identity. */
  async signIn(options: SignInOptions = {}): Promise<Reply> {
    return (await loadSignIn()).startSignIn(options);
  },

  /**
   * The answer of the route of OIDC_REDIRECT_URL: sets the session cookie, which lasts an hour, and returns the user to the
   * application. Throws an HttpError if the sign-in has expired or was refused.
   */
  async finishSignIn(request: SignInRequest): Promise<Reply> {
    return (await loadSignIn()).finishSignIn(request);
  },

  /**
   * The user who sent a request; undefined without a session. Throws an HttpError with 403 if a page of another origin sent
   * a request that changes something.
   */
  async user(request: SignInRequest): Promise<SignedInUser | undefined> {
    return (await loadSignIn()).findUser(request);
  },

  /** The user who sent a request. Throws an HttpError with 401 without a session. */
  async requireUser(request: SignInRequest): Promise<SignedInUser> {
    const user = (await loadSignIn()).findUser(request);
    if (user !== undefined) return user;
    throw new HttpError(401, "Sign in first.", {
      headers: { "WWW-Authenticate": 'Cookie realm="session"' },
    });
  },

  /** The answer that ends the session. */
  async signOut(options: SignOutOptions = {}): Promise<Reply> {
    return (await loadSignIn()).endSession(options);
  },

  /** An access token of the service itself, for `scope` or all scopes of its client. */
  async token(scope?: string): Promise<string> {
    return (await import("./client-token.ts")).getClientToken(scope);
  },
};

/**
 * Object storage: the bucket of the service (AWS_ENDPOINT_URL_S3, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, S3_BUCKET).
 *
 * ```ts
 * await objects.put("reports/1.pdf", bytes, { type: "application/pdf" });
 * return redirect(await objects.downloadUrl("reports/1.pdf"));
 * ```
 */
export const objects = {
  /** Stores an object; large ones in parts. Streams need no known size. */
  async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<void> {
    return (await loadStorage()).putObject(key, body, options);
  },

  /** An object with its fields; undefined if it does not exist. Read or cancel its body. */
  async get(key: string): Promise<Response | undefined> {
    return (await loadStorage()).getObject(key);
  },

  /** Deletes an object; one that does not exist is no error. */
  async delete(key: string): Promise<void> {
    return (await loadStorage()).deleteObject(key);
  },

  /** A page of up to 1 000 objects, sorted by key. */
  async list(options: ListOptions = {}): Promise<ObjectPage> {
    return (await loadStorage()).listObjects(options);
  },

  /** A URL with which a browser stores an object by PUT. */
  async uploadUrl(key: string, options: UrlOptions = {}): Promise<string> {
    return (await loadStorage()).createUploadUrl(key, options);
  },

  /** A URL with which a browser reads an object. */
  async downloadUrl(key: string, options: DownloadUrlOptions = {}): Promise<string> {
    return (await loadStorage()).createDownloadUrl(key, options);
  },
};

/**
 * Messaging (MESSAGING_URL, and the client of `auth`).
 *
 * ```ts
 * await messages.publish("notes.added", note);
 * for await (const message of messages.subscribe("notes.*", { signal })) show(message.json());
 * ```
 */
export const messages = {
  /** Publishes text, bytes, or a value as JSON; resolves when the message is stored. */
  async publish(
    topic: string,
    payload: unknown,
    options: PublishOptions = {},
  ): Promise<{ id: string }> {
    return (await loadMessaging()).publishMessage(topic, payload, options);
  },

  /**
   * Messages of a topic, or of a pattern in which `*` is one level and `#` any number. A lost connection is opened again.
   * Ends when `signal` is aborted.
   */
  async *subscribe(topic: string, options: SubscribeOptions = {}): AsyncGenerator<Message, void> {
    yield* (await loadMessaging()).subscribe(topic, options);
  },
};

/**
 * Mail (MAIL_URL, and the client of `auth`).
 *
 * ```ts
 * await mail.send({ to: user.email, subject: "Reminder", text }, { idempotencyKey: `reminder-${note.id}` });
 * ```
 */
export const mail = {
  /** Sends a mail; resolves when mail has stored it. */
  async send(content: Mail, options: SendOptions = {}): Promise<SentMail> {
    return (await import("./mail.ts")).sendMail(content, options);
  },
};
