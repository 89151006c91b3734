import type { Readable } from 'node:stream'
import { type CorpusRow, parseCorpusRow } from '../../classify/known/corpus.ts'
import { Fault } from '../../shared/fault.ts'
import { type Line, lines } from '../../terminal/lines.ts'

/** A row and its line number, counted from 1. */
interface NumberedRow {
  readonly number: number
  readonly row: CorpusRow
}

/**
 * The rows of a corpus file: one JSON object a line, empty lines are skipped. `refused` is called for each
 * invalid line, and reading continues; if it throws, reading ends. `ja4plus`: whether to compute JA4H.
 */
export async function* readCorpus(
  stream: Readable,
  refused: (number: number, fault: Fault) => void,
  ja4plus = true,
): AsyncGenerator<NumberedRow> {
  let number = 0
  for await (const batch of lines(stream, LINE_BYTES_MAX)) {
    for (const line of batch) {
      number++
      const read = rowIn(line, ja4plus)
      if (read instanceof Fault) refused(number, read)
      else if (read !== null) yield { number, row: read }
    }
  }
}

function rowIn({ text }: Line, ja4plus: boolean): CorpusRow | Fault | null {
  if (text === null)
    return new Fault('CORPUS_LINE_TOO_LONG', `is longer than ${LINE_BYTES_MAX} bytes; split its connections`)
  if (text.trim() === '') return null
  try {
    return parseCorpusRow(JSON.parse(text), ja4plus)
  } catch (error) {
    if (error instanceof Fault) return error
    if (error instanceof SyntaxError)
      return new Fault('CORPUS_NOT_JSON', `is not valid JSON: ${error.message}`)
    throw error
  }
}

/** Enough for a connection with ten thousand requests of a browser. */
const LINE_BYTES_MAX = 16 * 1024 * 1024
