import { submissionContract } from '../contract/submissions.ts'
import { KINDS } from './databases.ts'

for (const kind of KINDS) submissionContract(kind)
