import { dropShared } from '../store/postgres-databases.ts'

/** tap runs this after the tests: a server that was there before keeps nothing of them. */
await dropShared()
