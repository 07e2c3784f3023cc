// Bounces that are only text, as qmail, Exim, Exchange, Domino and many providers write them.
import { readAnswer } from "./answer.ts";
import { parseDeliveryStatus, type RecipientStatus } from "./delivery-status.ts";

/** Facts of a message that is not multipart/report. */
export interface PlainMail {
  subject: string;
  from: string;
  /** Value of a header field by its name in lower case; "" without one. */
  readField: (name: string) => string;
  text: string;
}

const TEXT_CHARACTERS_MAX = 16_384;
const DETAIL_CHARACTERS_MAX = 500;
const PARAGRAPH_LINES_MAX = 12;

// Beginnings of the message that is returned below the report.
const ORIGINAL =
  /^[ \t>]*(?:-{2,}.{0,20}?(?:below this line is a copy|this is a copy of|the headers? of the original|original message|returned message|unsent message|message header|begin message|transcript of session follows.*unsent|копия|исходн)|original message(?: headers?)?:?[ \t]*$|en-t[êe]tes de message|returned message follows|message headers follow|received: from |return-path: ?<)/im;
const FAILURE_TEXT =
  /this is the qmail|returning message to sender|mail delivery (?:failed|system|error)|(?:could|can) ?n[o']t be delivered|(?:was|were|is) ?n[o']t delivered|not be delivered|undeliver(?:able|ed)|delivery (?:has )?failed|delivery to the following recipients? (?:has )?failed|failed permanently|unable to deliver|permanent (?:fatal )?error|did not reach the following|nicht zugestellt|unzustellbar|n'a pas pu être|non remis|no se (?:ha podido|pudo) entregar|não (?:pôde|foi) (?:ser )?entreg|impossibile recapitare|niet (?:worden )?bezorgd|не может быть доставлено|не доставлено|退信|投递失败|配信できません|送信できません/i;
const FAILURE_SUBJECT =
  /^(?:failure notice|mail (?:delivery )?(?:failed|failure|system error)|undeliver(?:able|ed)|delivery (?:status notification|failure|failed|report)|returned mail|mail could not be delivered|message undeliverable|unzustellbar|non[ _]remis|não entregue|no se puede entregar|недоставлен|warning: )/i;
const DELAY =
  /(?:still|yet) (?:un|not )deliver|delivery (?:is|has been|temporarily) (?:delayed|deferred|suspended)|message .{0,60}delayed|delayed \d+ hours|will (?:be retried|continue|keep trying|try again)|could not send message for (?:the )?(?:past|last)|no action is required on your part|do not need to resend|(?:delay|incomplete)\)|wird weiter(?:hin)? versucht/i;
const FINAL_SUBJECT = /fail|undeliver|returned|unzustellbar|non[ _]remis/i;
const AUTOMATIC_SUBJECT =
  /^(?:(?:re|aw|sv|antw)[:：]\s*)?(?:auto(?:matic|mated)?[ -]?(?:reply|response|antwort)|autoreply|out of (?:the )?office|abwesen|automatische antwort|réponse automatique|absen(?:ce|t)|respuesta automática|resposta automática|risposta automatica|automatisch antwoord|автоответ|自动回复|自動返信|自動応答|vacation|on (?:vacation|holiday|leave))/i;

/** True for replies of programs in place of a person: vacation notices, read receipts, tickets (RFC 3834). */
export function isAutomaticReply({ subject, readField }: PlainMail): boolean {
  const submitted = readField("auto-submitted").toLowerCase();
  return (
    /^auto-(?:replied|notified)/.test(submitted) ||
    /auto_?-?reply|vacation/i.test(readField("precedence")) ||
    ["x-autoreply", "x-autorespond", "x-autoreply-from", "x-vacation"].some(
      (name) => readField(name) !== "",
    ) ||
    /disposition-notification/i.test(readField("content-type")) ||
    AUTOMATIC_SUBJECT.test(subject.trim())
  );
}

/** Reads a bounce that is only text; undefined if the message does not say that mail was not delivered. */
export function readPlainBounce(mail: PlainMail): RecipientStatus | undefined {
  const text = cutOriginal(mail.text);
  const quoted = /^[ \t]*(?:final-recipient|diagnostic-code)[ \t]*:/im.test(text);
  if (quoted) {
    const [found] = parseDeliveryStatus(text);
    if (found !== undefined) return found;
  }
  const failed = mail.readField("x-failed-recipients");
  const fromDaemon = /mailer-?daemon|postmaster|mail delivery|microsoftexchange/i.test(mail.from);
  const names = FAILURE_SUBJECT.test(mail.subject.trim()) || FAILURE_TEXT.test(text);
  const isVacation = AUTOMATIC_SUBJECT.test(mail.subject.trim());
  if (failed === "" && (isVacation || !names || !(fromDaemon || FAILURE_TEXT.test(text)))) {
    return undefined;
  }
  const recipients = failed
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one.includes("@"));
  if (DELAY.test(mail.subject) || (DELAY.test(text) && !FINAL_SUBJECT.test(mail.subject))) {
    return { kind: "delayed", status: "", recipients, text: toDetail(text) };
  }
  const answer = findAnswer(text) || toDetail(mail.subject);
  const status = readAnswer(answer).enhanced ?? "";
  return { kind: "failed", status, recipients, text: answer };
}

/** Returns the first lines of a text, on one line. */
export function toDetail(text: string): string {
  return cutOriginal(text)
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, DETAIL_CHARACTERS_MAX);
}

function cutOriginal(text: string): string {
  const whole = text.slice(0, TEXT_CHARACTERS_MAX);
  const at = ORIGINAL.exec(whole)?.index ?? -1;
  return at > 0 ? whole.slice(0, at) : whole;
}

// The lines from the first code to the end of its paragraph; the whole report if it quotes no code.
function findAnswer(text: string): string {
  const lines = text.split(/\r?\n|\r/);
  const at = lines.findIndex((line) => {
    const { code, enhanced } = readAnswer(` ${line} `);
    return code !== undefined || enhanced !== undefined;
  });
  if (at === -1) return toDetail(text);
  const rest = lines.slice(at, at + PARAGRAPH_LINES_MAX);
  const ends = rest.findIndex((line, index) => index > 0 && line.trim() === "");
  // A status before the sentence, as in `<server #5.1.1>`, belongs to the line above.
  const before = lines[at - 1]?.trim() ?? "";
  const isBare = !/\p{L}{3}/u.test(rest[0]!.replaceAll(/<[^>]*>|\S+@\S+/g, ""));
  const found = rest.slice(0, ends === -1 ? undefined : ends);
  return toDetail([...(isBare ? [before] : []), ...found].join(" "));
}
