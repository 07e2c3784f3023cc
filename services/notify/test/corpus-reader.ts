// Reads the corpus of reports: the answers, each quoted in the reports that its section names, and the whole messages.
import { readFileSync } from "node:fs";

/** Expected consequence of a report, see the head of `bounce/corpus/messages.txt`. */
export type Expected =
  | "hard"
  | "soft"
  | "delayed"
  | "complaint"
  | "alarm"
  | "optout"
  | "feedback"
  | "none";

/** A report with its expected consequence. */
export interface CorpusEntry {
  name: string;
  expected: Expected;
  /** Sender of the envelope. */
  sender: string;
  content: Buffer;
}

type Form = (status: string, answer: string) => string;

const FOLDER = new URL("bounce/corpus/", import.meta.url);
const RETURNED =
  "From: shop@shop.example\nTo: ada@example.org\nSubject: Your order\n\nThank you.\n";
const MULTIPART =
  'MIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status; boundary="b"\n';
const UTF8 = "Content-Type: text/plain; charset=utf-8\n";

/** The reports in which servers quote an answer. */
const FORMS: Readonly<Record<string, Form>> = {
  // bounce(8): a notice, the fields, the message.
  postfix: (status, answer) =>
    `From: MAILER-DAEMON@mx.isp.example (Mail Delivery System)\nSubject: Undelivered Mail Returned to Sender\n${MULTIPART}\n--b\n${UTF8}\nThis is the mail system at host mx.isp.example. The mail could not be delivered to one or more recipients.\n\n<ada@example.org>: host mx.example.org[192.0.2.1] said: ${answer} (in reply to RCPT TO command)\n\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.isp.example\nX-Postfix-Queue-ID: 4F1Z2Q\nArrival-Date: Sat, 28 Nov 2026 12:00:00 +0000\n\nFinal-Recipient: rfc822; ada@example.org\nOriginal-Recipient: rfc822;ada@example.org\nAction: failed\nStatus: ${status}\nRemote-MTA: dns; mx.example.org\nDiagnostic-Code: smtp; ${answer}\n\n--b\nContent-Type: message/rfc822\n\n${RETURNED}\n--b--\n`,
  // Text only, with the failed address in the header.
  exim: (_status, answer) =>
    `From: Mail Delivery System <Mailer-Daemon@host.example>\nX-Failed-Recipients: ada@example.org\nAuto-Submitted: auto-replied\nSubject: Mail delivery failed: returning message to sender\n${UTF8}\nThis message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n  ada@example.org\n    host mx.example.org [192.0.2.1]\n    SMTP error from remote mail server after RCPT TO:<ada@example.org>:\n    ${answer}\n\n------ This is a copy of the message, including all the headers. ------\n\nReturn-path: <bounce@shop.example>\n${RETURNED}`,
  // qmail-send: one paragraph per address.
  qmail: (_status, answer) =>
    `From: MAILER-DAEMON@host.example\nSubject: failure notice\n${UTF8}\nHi. This is the qmail-send program at host.example.\nI'm afraid I wasn't able to deliver your message to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n<ada@example.org>:\n192.0.2.1 does not like recipient.\nRemote host said: ${answer}\nGiving up on 192.0.2.1.\n\n--- Below this line is a copy of the message.\n\nReturn-Path: <bounce@shop.example>\n${RETURNED}`,
  // Exchange 2007 and later, without the part of fields.
  exchange: (_status, answer) =>
    `From: Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@corp.example>\nSubject: Undeliverable: Your order\nContent-Language: en-US\n${UTF8}\nDelivery has failed to these recipients or groups:\n\nada@example.org\nThe message could not be delivered. Contact the recipient by some other means.\n\nDiagnostic information for administrators:\n\nGenerating server: ex1.corp.example\n\nada@example.org\n#${answer} ##\n\nOriginal message headers:\n\nReceived: from shop.example by ex1.corp.example\n${RETURNED}`,
  gmx: (_status, answer) =>
    `From: GMX Mailer Daemon <mailer-daemon@gmx.example>\nSubject: Mail delivery failed: returning message to sender\nX-GMX-Antispam: 0 (Mail was not recognized as spam)\n${UTF8}\nThis message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of\nits recipients. This is a permanent error. The following address\nfailed:\n\n"ada@example.org":\nSMTP error from remote server after RCPT command:\nhost: mx.example.org\n${answer}\n\n--- The header of the original message is following. ---\n\nReceived: from shop.example by mout.gmx.example\n${RETURNED}`,
  mailru: (_status, answer) =>
    `From: mailer-daemon@corp.mail.ru\nSubject: Mail failure.\nMessage-Id: <E1-0-a@mx12.mail.ru>\n${UTF8}\nЭто письмо создано автоматически сервером Mail.Ru, отвечать на него не нужно.\n\nК сожалению, Ваше письмо не может быть доставлено одному или нескольким получателям:\n\n**********************\n\nThis message was created automatically by mail delivery software.\n\n  ada@example.org\n    SMTP error from remote mail server after RCPT TO:<ada@example.org>:\n    host mx.example.org [192.0.2.1]: ${answer}\n\n------ This is a copy of the message, including all the headers. ------\n\n${RETURNED}`,
};

/** Returns all reports. */
export function readCorpus(): CorpusEntry[] {
  return [...readAnswers(), ...readMessages()];
}

function readAnswers(): CorpusEntry[] {
  let forms: string[] = [];
  let group = "";
  const entries: CorpusEntry[] = [];
  for (const line of readLines("answers.txt")) {
    const section = /^\[([a-z ]+)\] (.*)$/.exec(line);
    if (section !== null) {
      forms = section[1]!.split(" ");
      group = section[2]!;
    }
    const [expected = "", status = "", answer] = line.split(/ \| /);
    if (answer === undefined) continue;
    for (const form of forms) {
      const text = FORMS[form]!(status, answer);
      const name = `${group}, ${form}: ${status} ${answer}`;
      entries.push({ name, expected: expected as Expected, sender: "", content: toMail(text) });
    }
  }
  return entries;
}

function readMessages(): CorpusEntry[] {
  const text = readLines("messages.txt").join("\n");
  return text.split(/^=== /m).flatMap((block): CorpusEntry[] => {
    const end = block.indexOf("\n");
    const [, expected, sender = "", name] =
      /^(\w+)(?: from (\S+))?: (.*)$/.exec(block.slice(0, end)) ?? [];
    if (name === undefined) return [];
    const content = toMail(block.slice(end + 1));
    return [{ name, expected: expected as Expected, sender, content }];
  });
}

function readLines(name: string): string[] {
  const lines = readFileSync(new URL(name, FOLDER), "utf8").split("\n");
  return lines.filter((line) => !line.startsWith("#!") && !line.startsWith("# "));
}

function toMail(text: string): Buffer {
  return Buffer.from(text.replaceAll("\n", "\r\n"));
}
