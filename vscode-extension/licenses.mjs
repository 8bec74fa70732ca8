// The licences of the packages that went into a bundle, as those licences ask.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** Writes the licence texts of every package among the inputs of esbuild's metafile. Throws if one has none. */
export function writeThirdPartyLicenses(metafile, file) {
  const packages = new Set(Object.keys(metafile.inputs).flatMap((input) => packageFolder(input) ?? []));
  const texts = [...packages].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    return `${name} ${version}\n\n${readFileSync(`${folder}/${licenseIn(folder)}`, 'utf8').trim()}\n`;
  });
  writeFileSync(file, texts.join(`\n${'-'.repeat(80)}\n\n`));
}

function packageFolder(input) {
  return /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input)?.[0];
}

function licenseIn(folder) {
  const name = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!name) {
    throw new Error(`${folder} has no licence file`);
  }
  return name;
}
