import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeBuiltSet } from './built-set.ts'
import { ListCopies } from '../list-copies.ts'
import { BUILTIN_ALONE, loadContent } from './signature-content.ts'
import { loadBuiltin } from './signature-files.ts'

// For `npm run build`, into the folder that it is given: what comes with Gatehouse, as loadBuiltin and builtSet read it where
// it is there.
const folder = process.argv[2]!
await writeFile(join(folder, 'signatures.json'), JSON.stringify(await loadBuiltin(new ListCopies())))
await writeBuiltSet(await loadContent(BUILTIN_ALONE), folder)
