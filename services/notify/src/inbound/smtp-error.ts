// Errors that are sent as SMTP replies.

/** A reply with a code of class 4 or 5; the text starts with an enhanced status code (RFC 3463). */
export class SmtpError extends Error {
  readonly responseCode: number;

  constructor(responseCode: number, text: string) {
    super(text);
    this.name = "SmtpError";
    this.responseCode = responseCode;
  }
}
