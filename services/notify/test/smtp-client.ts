// A bare SMTP client that sends exactly the bytes that a test chooses.
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** A connection. */
export interface SmtpClient {
  /** Sends a command and returns the reply, its lines joined by `\n`. */
  command(line: string): Promise<string>;
  /** Sends bytes as they are. */
  write(bytes: string | Uint8Array): void;
  /** Returns the next reply; "" after the connection was closed. */
  reply(): Promise<string>;
  /** Sends a whole mail and returns the last reply. */
  mail(sender: string, recipients: readonly string[], content: string): Promise<string>;
  /** Does the TLS handshake after a 220 to STARTTLS. */
  startTls(): Promise<void>;
  close(): void;
}

/** Connects, reads the greeting and sends EHLO. */
export async function openSmtp(port: number, helo = "client.test"): Promise<SmtpClient> {
  const client = await connectSmtp(port);
  await client.reply();
  await client.command(`EHLO ${helo}`);
  return client;
}

/** Connects without reading the greeting. */
export async function connectSmtp(port: number): Promise<SmtpClient> {
  let socket: Socket = connectTcp(port, "127.0.0.1");
  let text = "";
  let isClosed = false;
  let waiting: (() => void) | undefined;
  const wake = (): void => {
    waiting?.();
    waiting = undefined;
  };
  const listen = (): void => {
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      wake();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      isClosed = true;
      wake();
    });
  };
  listen();
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  const reply = async (): Promise<string> => {
    for (;;) {
      const found = /^(?:\d{3}-[^\r]*\r\n)*\d{3}(?: [^\r]*)?\r\n/.exec(text)?.[0];
      if (found !== undefined) {
        text = text.slice(found.length);
        return found.trimEnd().replaceAll("\r\n", "\n");
      }
      if (isClosed) return "";
      await new Promise<void>((resolve) => {
        waiting = resolve;
      });
    }
  };
  const client: SmtpClient = {
    reply,
    write: (bytes) => void socket.write(bytes),
    command: (line) => {
      socket.write(`${line}\r\n`);
      return reply();
    },
    mail: async (sender, recipients, content) => {
      let answer = await client.command(`MAIL FROM:<${sender}>`);
      for (const one of recipients) {
        if (!answer.startsWith("250")) return answer;
        answer = await client.command(`RCPT TO:<${one}>`);
      }
      if (!answer.startsWith("250")) return answer;
      answer = await client.command("DATA");
      if (!answer.startsWith("354")) return answer;
      socket.write(`${content}\r\n.\r\n`);
      return reply();
    },
    startTls: async () => {
      const plain = socket;
      plain.removeAllListeners("data");
      text = "";
      const secure = connectTls({ socket: plain, rejectUnauthorized: false });
      await new Promise<void>((resolve, reject) => {
        secure.once("secureConnect", resolve).once("error", reject);
      });
      socket = secure;
      listen();
    },
    close: () => socket.destroy(),
  };
  return client;
}
