/**
 * The data of the events of a text/event-stream, as browsers read it; events without data are left out.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export async function* eventData(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of linesOf(chunks)) {
    // A line without a colon is a field without a value; before the colon of a comment there is nothing.
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (line === '') {
      const text = data.join('\n');
      data = [];
      if (text !== '') {
        yield text;
      }
    } else if (field === 'data') {
      data.push(value);
    }
  }
}

/** Complete lines, whose ends are LF, CRLF or CR. */
async function* linesOf(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  /** What a chunk may begin with that is no part of its first line: a byte order mark, or the LF after a CR. */
  let ignored = /^\ufeff/;
  for await (const chunk of chunks) {
    const lines = (rest + chunk.replace(ignored, '')).split(/\r\n|\r|\n/);
    ignored = chunk.endsWith('\r') ? /^\n/ : /^$/;
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
