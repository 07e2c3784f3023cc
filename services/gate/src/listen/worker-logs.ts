// The files that a worker writes: access log and recording.
import { ACCESS_LOG_WRITER_DEFAULT, AccessLogWriter } from "../access-log/access-log-writer.ts";
import type { RecordingLog } from "../recording/recording-log.ts";
import type { Recorder } from "../request/recorder.ts";
import type { GlobalSpec, MetricBlock } from "../shared-state/index.ts";

/** Lines of a recording are larger than those of an access log. */
const RECORDING_WRITER = { ...ACCESS_LOG_WRITER_DEFAULT, pendingBytesMax: 33_554_432 };

/** The writers of one change. */
export interface OpenedLogs {
  accessLog: AccessLogWriter | undefined;
  recording: AccessLogWriter | undefined;
}

/** Options of {@link WorkerLogs}. */
export interface WorkerLogsOptions {
  recorder: Recorder;
  recordings: RecordingLog;
  block: MetricBlock;
  onError: (msg: string, error: Error) => void;
}

/** Opens, replaces and closes the logs of one worker. */
export class WorkerLogs {
  readonly #options: WorkerLogsOptions;

  constructor(options: WorkerLogsOptions) {
    this.#options = options;
  }

  /** Opens the logs whose path has changed; the others stay open. Throws the system's error. */
  open(globals: GlobalSpec, before: GlobalSpec | undefined): OpenedLogs {
    const { recorder, recordings } = this.#options;
    const open = (
      name: keyof OpenedLogs,
      current: AccessLogWriter | undefined,
    ): AccessLogWriter | undefined => {
      const path = globals[name]?.path;
      if (path === undefined) return undefined;
      return path === before?.[name]?.path ? current : this.#create(name, path);
    };
    return {
      accessLog: open("accessLog", recorder.accessLog),
      recording: open("recording", recordings.writer),
    };
  }

  /** Activates the logs of a change; others are flushed and closed. */
  takeOver({ accessLog, recording }: OpenedLogs): void {
    const { recorder, recordings } = this.#options;
    const former = [recorder.accessLog, recordings.writer];
    recorder.accessLog = accessLog;
    recordings.writer = recording;
    for (const writer of former) {
      if (writer !== accessLog && writer !== recording) void writer?.close();
    }
  }

  /** Opens the files again, because others may have their names now. */
  async reopen(): Promise<void> {
    const { recorder, recordings } = this.#options;
    await Promise.all([recorder.accessLog?.reopen(), recordings.writer?.reopen()]);
  }

  async close(): Promise<void> {
    const { recorder, recordings } = this.#options;
    await Promise.all([recorder.accessLog?.close(), recordings.close()]);
  }

  /** Publishes the numbers of lines. */
  count(): void {
    const { block, recorder, recordings } = this.#options;
    const { accessLog } = recorder;
    if (accessLog !== undefined) {
      block.setCounter("accessLogLines", accessLog.lines);
      block.setCounter("accessLogDropped", accessLog.dropped);
    }
    const { writer } = recordings;
    if (writer === undefined) return;
    block.setCounter("recorded", writer.lines);
    block.setCounter("recordingSkipped", writer.dropped + recordings.skipped);
  }

  #create(name: keyof OpenedLogs, path: string): AccessLogWriter {
    const isAccessLog = name === "accessLog";
    const msg = isAccessLog ? "cannot write the access log" : "cannot write the recording";
    return new AccessLogWriter({
      path,
      ...(isAccessLog ? ACCESS_LOG_WRITER_DEFAULT : RECORDING_WRITER),
      onError: (error) => this.#options.onError(msg, error),
    });
  }
}
