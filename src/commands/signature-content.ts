import { IndexBuilder } from '../classify/index-builder.ts'
import { fingerprintsOf } from '../classify/knowledge.ts'
import type { FingerprintSignature } from '../classify/signature.ts'
import type { Software } from '../classify/software.ts'
import { Fault } from '../fault.ts'
import { softwareInFeed } from '../plane/feed.ts'
import type { SetContent } from '../plane/signature-set.ts'
import { loadWeightsDocument } from './knowledge-files.ts'
import { loadSoftware, SignatureReading } from './signature-files.ts'
import type { LineSink } from './signature-lines.ts'

/** What a gateway's knowledge is made from, beside what comes with Gatehouse. It can be sent to another process. */
export interface SignatureSources {
  /** Payloads that somebody who is trusted has signed; a later one is stronger. */
  readonly feeds: readonly Uint8Array[]
  /** The operator's own files and folders, which are stronger still. */
  readonly paths: readonly string[]
  /** `null`: those that come with Gatehouse. */
  readonly weightsFile: string | null
}

/** Throws a ConfigFault with everything that is wrong in the files. */
export async function loadContent({ feeds, paths, weightsFile }: SignatureSources): Promise<SetContent> {
  const content = new Content()
  const weights = await loadWeightsDocument(weightsFile)
  content.addAll(await loadSoftware(null))
  for (const payload of feeds) content.addAll(softwareInFeed(payload))
  const reading = await SignatureReading.of(paths)
  for (const { list } of reading.lists) content.addAll(list)
  await reading.readLines(content)
  reading.done()
  const { list, fingerprints } = content.whole()
  return { list, fingerprints, weights }
}

/** Software by id, the last word on each, and fingerprints that add to it. */
class Content implements LineSink {
  readonly #list: Software[] = []
  readonly #numbers = new Map<string, number>()
  readonly #fingerprints = new IndexBuilder()

  addAll(list: readonly Software[]): void {
    for (const software of list) this.software(software)
  }

  software(software: Software): void {
    const number = this.#numbers.get(software.id) ?? this.#list.length
    if (number >= SOFTWARE_MAX)
      throw new Fault('SIGNATURES_TOO_MANY', `there is more software than ${SOFTWARE_MAX}`)
    this.#numbers.set(software.id, number)
    this.#list[number] = software
  }

  fingerprint(of: string, { type, value, observations }: FingerprintSignature): boolean {
    const software = this.#numbers.get(of)
    if (software === undefined) return false
    this.#fingerprints.add({ type, value, software, observations })
    return true
  }

  whole(): Omit<SetContent, 'weights'> {
    for (const signature of fingerprintsOf(this.#list)) this.#fingerprints.add(signature)
    return { list: this.#list, fingerprints: this.#fingerprints }
  }
}

/** Each is some kilobytes in every worker. */
const SOFTWARE_MAX = 20_000
