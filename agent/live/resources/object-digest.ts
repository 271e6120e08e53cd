import { fieldsLookedAt } from '../managed/managed-objects.ts';
import { incomplete, type JsonMember, type JsonScan } from './json-scan.ts';

/** What an object, or a row of a Table, says of itself. */
export interface Digest {
  /** Where it ends; `incomplete` when it is not all there. */
  readonly end: number;
  /** JSON of those fields alone that are looked at. */
  readonly digest: string;
}

const openObject = 123;
/** Who wrote which field: often the longest part of the metadata, and nobody's business here. */
const managedFields = 'managedFields';
const longestName = Math.max(...[...fieldsLookedAt].map((name) => name.length));

/**
 * Reads an object to its end, and of it what says whose it is. It is as if it had been parsed whole: of a field that occurs twice the
 * last counts, and where a name is written with escapes all is kept.
 */
export function readObject(scan: JsonScan, bytes: Buffer, start: number): Digest {
  const kept: string[] = [];
  let isOdd = false;
  const end = scan.object(bytes, start, (keyStart, keyEnd, valueStart, isEscaped) => {
    isOdd ||= isEscaped;
    const name = keyEnd - keyStart <= longestName ? bytes.toString('latin1', keyStart, keyEnd) : '';
    if (name === 'metadata' && bytes[valueStart] === openObject) {
      const { end: valueEnd, digest, isOdd: isMetadataOdd } = readMetadata(scan, bytes, valueStart);
      isOdd ||= isMetadataOdd;
      kept.push(`"metadata":${digest}`);
      return valueEnd;
    }
    const valueEnd = scan.value(bytes, valueStart);
    if (valueEnd !== incomplete && fieldsLookedAt.has(name)) {
      kept.push(bytes.toString('utf8', keyStart - 1, valueEnd));
    }
    return valueEnd;
  });
  if (end === incomplete) {
    return { end, digest: '' };
  }
  return { end, digest: isOdd ? bytes.toString('utf8', start, end) : `{${kept.join(',')}}` };
}

/** The same for a row of a Table, of which the object is looked at. */
export function readRow(scan: JsonScan, bytes: Buffer, start: number): Digest {
  let object = 'null';
  let isOdd = false;
  const end = scan.object(bytes, start, (keyStart, keyEnd, valueStart, isEscaped) => {
    isOdd ||= isEscaped;
    if (bytes.toString('latin1', keyStart, keyEnd) !== 'object') {
      return scan.value(bytes, valueStart);
    }
    if (bytes[valueStart] === openObject) {
      const { end: valueEnd, digest } = readObject(scan, bytes, valueStart);
      object = digest;
      return valueEnd;
    }
    const valueEnd = scan.value(bytes, valueStart);
    object = bytes.toString('utf8', valueStart, Math.max(valueStart, valueEnd));
    return valueEnd;
  });
  if (end === incomplete) {
    return { end, digest: '' };
  }
  return { end, digest: isOdd ? bytes.toString('utf8', start, end) : `{"object":${object}}` };
}

/** All of the metadata but its {@link managedFields}. */
function readMetadata(scan: JsonScan, bytes: Buffer, start: number): Digest & { readonly isOdd: boolean } {
  const runs: string[] = [];
  let isOdd = false;
  let [runStart, runEnd] = [incomplete, incomplete];
  const closeRun = () => {
    if (runStart !== incomplete) {
      runs.push(bytes.toString('utf8', runStart, runEnd));
    }
    runStart = incomplete;
  };
  const member: JsonMember = (keyStart, keyEnd, valueStart, isEscaped) => {
    isOdd ||= isEscaped;
    const isLeftOut =
      keyEnd - keyStart === managedFields.length && bytes.toString('latin1', keyStart, keyEnd) === managedFields;
    if (isLeftOut) {
      closeRun();
    } else if (runStart === incomplete) {
      runStart = keyStart - 1;
    }
    runEnd = scan.value(bytes, valueStart);
    return runEnd;
  };
  const end = scan.object(bytes, start, member);
  if (end === incomplete) {
    return { end, digest: '', isOdd };
  }
  closeRun();
  return { end, digest: `{${runs.join(',')}}`, isOdd };
}
