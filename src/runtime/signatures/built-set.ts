import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { BUILT_FOLDER } from '../../shared/package-files.ts'
import type { Seed } from '../../classify/known/index/fingerprint-key.ts'
import type { IndexFile } from '../../plane/index-file.ts'
import {
  draftSet,
  placedSet,
  type SetContent,
  type SetDraft,
  type SignatureSet,
} from '../../plane/signature-set.ts'

/**
 * The set of what comes with Gatehouse, as `npm run build` has made it, so that whoever has no signatures of his own starts
 * in half the time; `null`: this is a checkout, or a machine of another byte order. It is part of the program, and not
 * checked more than the program is.
 */
export function builtSet(): Promise<SignatureSet | null> {
  return setIn(BUILT_FOLDER)
}

export async function setIn(folder: string): Promise<SignatureSet | null> {
  const file = join(folder, NAME)
  if (!existsSync(file)) return null
  const { byteOrder, index, ...draft }: BuiltSet = JSON.parse(await readFile(file, 'utf8'))
  return byteOrder === endianness() ? placedSet(draft, { path: join(folder, INDEX_NAME), ...index }) : null
}

/** The same bytes for the same content. */
export async function writeBuiltSet(
  content: SetContent,
  folder: string,
  byteOrder: ByteOrder = endianness(),
): Promise<void> {
  const bytes = content.fingerprints.build(SEED)
  const index = { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
  const set: BuiltSet = { byteOrder, index, ...draftSet(content) }
  await writeFile(join(folder, INDEX_NAME), bytes)
  await writeFile(join(folder, NAME), JSON.stringify(set))
}

type ByteOrder = ReturnType<typeof endianness>

interface BuiltSet extends SetDraft {
  readonly byteOrder: ByteOrder
  readonly index: Omit<IndexFile, 'path'>
}

const NAME = 'signature-set.json'
const INDEX_NAME = 'signature-set.index'
/** Nobody can add signatures to these, so that anybody may know it. */
const SEED: Seed = [0, 0]
