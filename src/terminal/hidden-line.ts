import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { Fault } from '../shared/fault.ts'
import type { Io } from './io.ts'

/** Reads a line without echo, or the first line of piped input. Throws a Fault if the input ends first. */
export async function readHidden(io: Io, prompt: string): Promise<string> {
  const stdin: Readable & Partial<Terminal> = io.stdin
  const isTyped = stdin.isTTY === true
  // Disable echo before the prompt, so that early typing is hidden, too.
  if (isTyped) stdin.setRawMode?.(true)
  if (isTyped) io.stderr.write(prompt)
  try {
    const line = await lineOf(stdin, isTyped)
    if (line === null) throw new Fault('INPUT_MISSING', 'there is no password on standard input')
    return line
  } finally {
    if (isTyped) stdin.setRawMode?.(false)
    if (isTyped) io.stderr.write('\n')
    stdin.pause()
  }
}

interface Terminal {
  readonly isTTY: boolean
  setRawMode(isRaw: boolean): unknown
}

/** `null`: the input ended without a line. */
function lineOf(stdin: Readable, isTyped: boolean): Promise<string | null> {
  const decoder = new StringDecoder('utf8')
  const { promise, resolve, reject } = Promise.withResolvers<string | null>()
  let line = ''
  const add = (chunk: Buffer | string) => {
    const text = typeof chunk === 'string' ? chunk : decoder.write(chunk)
    for (const [index, char] of [...text].entries()) {
      if (char === '\n' || (isTyped && char === '\r')) {
        // Keep the rest of the input for the next reader.
        const rest = [...text].slice(index + 1).join('')
        stop()
        if (rest !== '') stdin.unshift(Buffer.from(rest))
        return resolve(line.replace(/\r$/, ''))
      }
      if (isTyped && char === INTERRUPT) {
        stop()
        return reject(new Fault('INPUT_MISSING', 'nothing was changed'))
      }
      if (isTyped && char === END && line === '') return end()
      if (isTyped && ERASING.has(char)) line = [...line].slice(0, -1).join('')
      else line += char
    }
    if (line.length > LENGTH_MAX) {
      stop()
      reject(new Fault('INPUT_TOO_LONG', 'this is too long for a password'))
    }
  }
  const end = () => {
    stop()
    resolve(line === '' ? null : line.replace(/\r$/, ''))
  }
  const stop = () => stdin.off('data', add).off('end', end).off('error', reject).pause()
  stdin.on('data', add).on('end', end).on('error', reject).resume()
  return promise
}

const INTERRUPT = '\u0003'
const END = '\u0004'
const ERASING = new Set(['\u007f', '\b'])
const LENGTH_MAX = 10_000
