import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// The server of a development run; `npm run dev` passes the API on to it.
const api = process.env.FUSIONSCOPE_API ?? "http://127.0.0.1:8000";

/** Beside each file its gzip and Brotli forms, as small as they get, so that the server compresses nothing. */
function precompressed(): Plugin {
  return {
    name: "precompressed",
    apply: "build",
    writeBundle({ dir = "" }, bundle) {
      for (const name of Object.keys(bundle).filter((one) => /\.(js|css|html|svg)$/.test(one))) {
        const body = readFileSync(join(dir, name));
        writeFileSync(join(dir, `${name}.gz`), gzipSync(body, { level: 9 }));
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: body.length } }));
      }
    },
  };
}

export default defineConfig({
  build: {
    outDir: "../server/static",
    emptyOutDir: true,
    // Everything is a file of its own: a data: URL would need a wider content security policy.
    assetsInlineLimit: 0,
    target: "es2022",
    chunkSizeWarningLimit: 1600,
    // What several files share is one file: many small ones compress worse.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] } } },
  },
  plugins: [precompressed()],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "es" },
  server: { host: "127.0.0.1", proxy: { "/api": api } },
});
