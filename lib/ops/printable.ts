/** Control and format characters, and the line breaks of Unicode: what may steer a terminal, or hide what is written. */
const steering = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** A text of peers and objects as one line that does not steer a terminal: control and format characters are escaped. */
export function printable(text: string): string {
  return text.replace(steering, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** The same for a text of several lines, with tabs. */
export function printableLines(text: string): string {
  return text.replace(/\r?\n|\t|[\p{Cc}\p{Cf}\u2028\u2029]/gu, (found) =>
    /[\n\t]$/.test(found) ? found : printable(found),
  );
}

/** A text in JSON, or in double quotes of YAML, with escapes that mean the same: `\u`, of UTF-16 for both. */
export function escapedSteering(text: string): string {
  return text.replace(steering, (character) =>
    /[\n\t]/.test(character)
      ? character
      : Array.from({ length: character.length }, (_, at) => unit(character, at)).join(''),
  );
}

function unit(character: string, at: number): string {
  return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`;
}
