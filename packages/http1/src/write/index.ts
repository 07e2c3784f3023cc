// Serializers of HTTP/1.1 messages.
export { appendBytes, appendDecimal } from "./append-bytes.ts";
export {
  AnswerError,
  countContent,
  prepareAnswer,
  viewAsBuffer,
  writeAnswer,
  writePrepared,
  writePreparedStart,
  writeStreamHead,
} from "./answer.ts";
export type { Answer, AnswerContext, AnswerHeaders, PreparedAnswer } from "./answer.ts";
export { CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, writeChunkHead } from "./chunk-framing.ts";
export { compileCuts, compileForwardCuts } from "./field-cuts.ts";
export { HeadWriteError, HeadWriter } from "./head-writer.ts";
export type { FieldCuts } from "./head-writer.ts";
export { HttpDate } from "./http-date.ts";
export { statusLineOf } from "./status-line.ts";
