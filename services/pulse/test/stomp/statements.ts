// The normative statements of the STOMP protocol documents, and the test that covers each.

/** A statement of stomp.github.io/stomp-specification-1.0.html, -1.1.html or -1.2.html, in our words. */
export interface Statement {
  /** Versions whose documents have it. */
  versions: readonly ("1.0" | "1.1" | "1.2")[];
  section: string;
  statement: string;
  /** File below `test/stomp` and the beginning of the test's name, or the reason why there is none. */
  test: readonly [file: string, name: string] | { deviation: string };
}

const all = ["1.0", "1.1", "1.2"] as const;
const later = ["1.1", "1.2"] as const;
const frames = "frame-reader.test.ts";
const connection = "connection.test.ts";
const messages = "send-subscribe.test.ts";
const transactions = "transactions.test.ts";

/** The ledger. */
export const STATEMENTS: readonly Statement[] = [
  {
    versions: all,
    section: "Frames",
    statement: "A frame is a command, header lines, an empty line, a body and a NUL.",
    test: [frames, "frames are complete and in order"],
  },
  {
    versions: all,
    section: "Frames",
    statement: "Line ends may follow the NUL of a frame.",
    test: [frames, "frames are complete and in order"],
  },
  {
    versions: all,
    section: "Frames",
    statement: "content-length is the number of bytes of the body, which may then hold NUL.",
    test: [frames, "a body with content-length may hold NUL"],
  },
  {
    versions: all,
    section: "Frames",
    statement: "Without content-length the body ends at the first NUL.",
    test: [frames, "a body with content-length may hold NUL"],
  },
  {
    versions: ["1.2"],
    section: "Frames",
    statement: "A carriage return may precede the line feed of a line.",
    test: [frames, "lines may end with CR LF"],
  },
  {
    versions: later,
    section: "Frames",
    statement: "Headers are encoded in UTF-8.",
    test: [frames, "headers are UTF-8"],
  },
  {
    versions: ["1.1"],
    section: "Value encoding",
    statement: "Line feed, colon and backslash are escaped in headers.",
    test: [frames, "escapes depend on the version"],
  },
  {
    versions: ["1.2"],
    section: "Value encoding",
    statement: "Carriage return is escaped as well.",
    test: [frames, "escapes depend on the version"],
  },
  {
    versions: later,
    section: "Value encoding",
    statement: "An undefined escape is a fatal error.",
    test: [connection, "faults"],
  },
  {
    versions: later,
    section: "Value encoding",
    statement: "CONNECT and CONNECTED have no escapes, for clients of 1.0.",
    test: [frames, "CONNECT and CONNECTED are never escaped"],
  },
  {
    versions: later,
    section: "Value encoding",
    statement: "Spaces at the ends of header values are kept.",
    test: [frames, "spaces are part of headers"],
  },
  {
    versions: later,
    section: "Repeated headers",
    statement: "Of repeated headers, the first counts.",
    test: [frames, "of repeated headers the first counts"],
  },
  {
    versions: later,
    section: "Size limits",
    statement:
      "A server may limit the number of headers, the length of lines and the size of the body, and sends ERROR then.",
    test: [connection, "faults"],
  },
  {
    versions: later,
    section: "Bodies",
    statement: "Only SEND, MESSAGE and ERROR may have a body.",
    test: [connection, "faults"],
  },
  {
    versions: all,
    section: "CONNECT",
    statement: "The client begins with CONNECT; the server answers CONNECTED with a session.",
    test: [connection, "chooses the newest common version"],
  },
  {
    versions: later,
    section: "CONNECT",
    statement: "The server accepts STOMP as a synonym of CONNECT.",
    test: [connection, "chooses the newest common version"],
  },
  {
    versions: later,
    section: "Protocol negotiation",
    statement:
      "The server chooses the highest version of accept-version; without the header the client speaks 1.0.",
    test: [connection, "chooses the newest common version"],
  },
  {
    versions: later,
    section: "Protocol negotiation",
    statement:
      "Without a common version the server sends ERROR with the versions it speaks, and closes.",
    test: [connection, "names the supported versions"],
  },
  {
    versions: later,
    section: "CONNECT",
    statement: "The client must send the header host.",
    test: {
      deviation: "not required: common clients leave it out, and the broker has no virtual hosts",
    },
  },
  {
    versions: all,
    section: "CONNECT",
    statement: "login and passcode authenticate the client.",
    test: [connection, "accepts users of the file"],
  },
  {
    versions: later,
    section: "Heart-beating",
    statement:
      "Each direction beats at the longer of what one side can and the other wants; 0 is none.",
    test: ["heart-beat.test.ts", "each direction beats"],
  },
  {
    versions: later,
    section: "Heart-beating",
    statement: "The sender sends at least a line end within each interval.",
    test: [connection, "times"],
  },
  {
    versions: later,
    section: "Heart-beating",
    statement: "The receiver may treat the connection as dead without data, with a margin.",
    test: [connection, "a client that stops its heart-beats"],
  },
  {
    versions: all,
    section: "SEND",
    statement: "SEND needs a destination; other headers pass to the subscribers.",
    test: [messages, "a message passes with its headers"],
  },
  {
    versions: later,
    section: "SEND",
    statement: "content-type describes the body and is passed on.",
    test: [messages, "a message passes with its headers"],
  },
  {
    versions: all,
    section: "SEND",
    statement: "If the server cannot process a SEND, it sends ERROR and closes.",
    test: [transactions, "pipelined messages keep their order"],
  },
  {
    versions: all,
    section: "MESSAGE",
    statement: "MESSAGE has destination, message-id and the headers of SEND.",
    test: [messages, "a message passes with its headers"],
  },
  {
    versions: later,
    section: "MESSAGE",
    statement: "The destination should be that of the SEND.",
    test: {
      deviation: "it is in the form of the subscription: /topic/x, /queue/x and x are one topic",
    },
  },
  {
    versions: later,
    section: "MESSAGE",
    statement: "The header subscription is the id of the subscription.",
    test: [messages, "a message passes with its headers"],
  },
  {
    versions: ["1.2"],
    section: "MESSAGE",
    statement: "With explicit acknowledgement, MESSAGE has the header ack.",
    test: [messages, "ack:client acknowledges all before"],
  },
  {
    versions: ["1.0"],
    section: "SUBSCRIBE",
    statement: "The header id is optional; without it the destination identifies the subscription.",
    test: [messages, "1.0 and 1.1 acknowledge by message-id"],
  },
  {
    versions: later,
    section: "SUBSCRIBE",
    statement: "The header id is required and unique on the connection.",
    test: [connection, "faults"],
  },
  {
    versions: all,
    section: "SUBSCRIBE",
    statement: "ack is auto by default: messages count as acknowledged when they are sent.",
    test: [messages, "/topic/x and x are one topic"],
  },
  {
    versions: all,
    section: "SUBSCRIBE",
    statement: "With ack:client an ACK is cumulative; messages without one may be delivered again.",
    test: [messages, "ack:client acknowledges all before"],
  },
  {
    versions: later,
    section: "SUBSCRIBE",
    statement: "With ack:client-individual an ACK is of one message.",
    test: [messages, "ack:client acknowledges all before"],
  },
  {
    versions: ["1.0"],
    section: "SUBSCRIBE",
    statement: "A selector may filter messages.",
    test: { deviation: "not supported: ERROR says so" },
  },
  {
    versions: all,
    section: "UNSUBSCRIBE",
    statement: "UNSUBSCRIBE ends the subscription of this id, in 1.0 also by destination.",
    test: [transactions, "acknowledgements of a transaction apply"],
  },
  {
    versions: ["1.0", "1.1"],
    section: "ACK",
    statement: "ACK names message-id, in 1.1 with the subscription.",
    test: [messages, "1.0 and 1.1 acknowledge by message-id"],
  },
  {
    versions: ["1.2"],
    section: "ACK",
    statement: "ACK names the ack of the MESSAGE by id.",
    test: [messages, "ack:client acknowledges all before"],
  },
  {
    versions: later,
    section: "NACK",
    statement:
      "NACK says that a message was not consumed; the server may deliver it again or put it aside.",
    test: [messages, "a rejected message comes again"],
  },
  {
    versions: all,
    section: "BEGIN, COMMIT",
    statement: "SEND and ACK of a transaction take effect atomically at COMMIT.",
    test: [transactions, "the messages of a transaction come together"],
  },
  {
    versions: all,
    section: "ABORT",
    statement: "ABORT rolls a transaction back.",
    test: [transactions, "acknowledgements of a transaction apply"],
  },
  {
    versions: later,
    section: "BEGIN",
    statement: "Transactions that are open when the connection ends are aborted.",
    test: [transactions, "a transaction ends with its connection"],
  },
  {
    versions: all,
    section: "DISCONNECT",
    statement:
      "DISCONNECT with a receipt is answered after all frames before it; then the connection closes.",
    test: [connection, "times"],
  },
  {
    versions: all,
    section: "RECEIPT",
    statement:
      "Every frame but CONNECT may ask for a receipt, which is sent when it has been processed.",
    test: [transactions, "pipelined messages keep their order"],
  },
  {
    versions: all,
    section: "ERROR",
    statement: "ERROR has a message and a body with details; the server closes after it.",
    test: [connection, "faults"],
  },
  {
    versions: later,
    section: "ERROR",
    statement: "ERROR about a frame with a receipt has its receipt-id.",
    test: [connection, "faults"],
  },
];
