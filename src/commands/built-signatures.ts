import { ListCopies } from './list-copies.ts'
import { loadBuiltin } from './signature-files.ts'

// For `npm run build`: what comes with Gatehouse, as loadBuiltin reads it where it is there.
process.stdout.write(JSON.stringify(await loadBuiltin(new ListCopies())))
