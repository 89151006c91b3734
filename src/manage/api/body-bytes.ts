import type { IncomingMessage } from 'node:http'
import { Refusal } from '../refusal.ts'

/** The bytes of a body that is not compressed, whole. Throws a Refusal at more than `bytesMax`, and at one that is cut off. */
export function readBytes(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const leave = () => request.off('data', add).off('end', end).off('error', cut).off('close', cut)
    const refuse = (refusal: Refusal) => {
      leave()
      // Whoever sends more than is taken reads the answer all the same, until the time of the request is up.
      request.on('error', () => undefined).resume()
      reject(refusal)
    }
    const add = (chunk: Buffer) => {
      length += chunk.length
      if (length > bytesMax) refuse(new Refusal('too_large', `the body may have ${bytesMax} bytes`))
      else chunks.push(chunk)
    }
    const end = () => {
      leave()
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length))
    }
    const cut = () => refuse(new Refusal('invalid_request', 'the body is damaged, or was cut off'))
    request.on('data', add).on('end', end).on('error', cut).on('close', cut)
  })
}
