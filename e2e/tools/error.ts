/** Why a tool cannot be had, with what to do about it in the message. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly code:
    | 'GoMissing'
    | 'GoTooOld'
    | 'BuildFailed'
    | 'DownloadFailed'
    | 'NotExecutable'
    | 'NotWritable'
    | 'NoSuchVersion'
    | 'WrongSetting';

  constructor(code: ToolError['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** How to get the Go that is needed. */
export const howToGetGo = 'See https://go.dev/doc/install; `go version` must show 1.26 or newer.';

/** There is no Go, and it is needed for this: `build kubectl`. */
export const goMissing = (purpose: string) =>
  new ToolError('GoMissing', `Go is needed to ${purpose}, and there is no \`go\` on the PATH. ${howToGetGo}`);

/** A file cannot be written, as on a full disk. */
export const notWritable = (path: string, why: unknown) =>
  new ToolError('NotWritable', `${path} cannot be written: ${why instanceof Error ? why.message : why}`);
