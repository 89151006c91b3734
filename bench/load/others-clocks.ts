import { runOthers } from './others.ts'

await runOthers(Number(process.argv[2]))
