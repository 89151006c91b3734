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
 * The built-in signature set that `npm run build` made, which halves the startup time without own
 * signatures. `null` in a checkout, or on a machine with another byte order. It is part of the
 * program, so it is not validated.
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

/** Writes the same bytes for the same content. */
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
/** A fixed seed may be public here, because no one can add signatures to this set. */
const SEED: Seed = [0, 0]
