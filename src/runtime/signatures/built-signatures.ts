import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeBuiltSet } from './built-set.ts'
import { ListCopies } from '../list-copies.ts'
import { BUILTIN_ALONE, loadContent } from './signature-content.ts'
import { loadBuiltin } from './signature-files.ts'

// Run by `npm run build`. Writes the built-in signatures to the given folder, for loadBuiltin and builtSet.
const folder = process.argv[2]!
await writeFile(join(folder, 'signatures.json'), JSON.stringify(await loadBuiltin(new ListCopies())))
await writeBuiltSet(await loadContent(BUILTIN_ALONE), folder)
