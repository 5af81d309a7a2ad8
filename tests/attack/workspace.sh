#!/usr/bin/env bash
# Makes the sandbox's template: a home with secrets, and a workspace as hostile as an agent can make it. Every hostile
# thing leaves a marker of its own name in /hits. fixtures.rs says what sets each one off.
#
#   workspace.sh TEMPLATE
set -euo pipefail
template=$1
home=$template/home/agent work=$template/home/agent/work
W=/home/agent/work
mkdir -p "$work" "$template/etc"
export HOME=$template/nobody GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null LC_ALL=C
mkdir -p "$HOME/git/hooks" "$HOME/git/info"
export GIT_TEMPLATE_DIR=$HOME/git
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'

# --- the machine: what programs need of /etc, and nothing of this machine's own secrets
for name in alternatives ld.so.cache ld.so.conf ld.so.conf.d nsswitch.conf ssl java-11-openjdk java-17-openjdk \
    java-21-openjdk maven npmrc python3 python3.11 python3.13 localtime magic magic.mime debian_version os-release; do
    if [ -e "/etc/$name" ]; then cp -a "/etc/$name" "$template/etc/"; fi
done
rm -rf "$template/etc/ssl/private"
printf 'root:x:0:0::/root:/bin/bash\nagent:x:1000:1000::/home/agent:/bin/bash\n' >"$template/etc/passwd"
printf 'root:x:0:\nagent:x:1000:\n' >"$template/etc/group"
printf '127.0.0.1 localhost\n' >"$template/etc/hosts"

# --- secrets, each with a word of its own
secret() { mkdir -p "$(dirname "$template/$1")" && printf '%s\n' "$2" >"$template/$1"; }
secret etc/shadow 'root:SECRET-shadow-4f1d:19000:0:99999:7:::'
secret home/agent/.ssh/id_rsa $'-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET-ssh-8b2e\n-----END OPENSSH PRIVATE KEY-----'
secret home/agent/.aws/credentials $'[default]\naws_secret_access_key = SECRET-aws-77c0'
secret home/agent/.netrc 'machine x login y password SECRET-netrc-19aa'
secret home/agent/.config/gh/hosts.yml 'oauth_token: SECRET-gh-5d3c'
secret home/agent/.bash_history 'export TOKEN=SECRET-history-2e9b'
secret home/agent/other/.env 'KEY=SECRET-env-c4d8'
secret home/agent/.local/share/countersign/admin.key 'csk_SECRET-admin-03fe'
chmod 700 "$home/.ssh" "$home/.aws" "$home/.local/share/countersign"

# --- git
repo() {
    git init -q -b main "$work/$1"
    cd "$work/$1"
    printf 'one\n' >a.txt
    git add a.txt && git commit -qm one
    printf 'two\n' >a.txt && git commit -qam two
    # Not as the index knows it, and as long: readers have to look at what it holds.
    printf 'six\n' >a.txt
}
hit() { printf 'touch /hits/%s' "$1"; }
program() { printf '#!/bin/sh\ntouch /hits/%s\nexit %s\n' "$2" "${3:-0}" >"$1" && chmod +x "$1"; }

repo honest && git checkout -q a.txt && mkdir src && printf 'fn main() {}\n' >src/main.rs
repo fsmonitor && git config core.fsmonitor "$(hit fsmonitor); false"
repo pager && git config core.pager "$(hit pager); cat" && git config pager.status true
repo extdiff && git config diff.external "$(hit extdiff); true"
repo textconv && printf '*.txt diff=conv\n' >.gitattributes && git config diff.conv.textconv "$(hit textconv); cat"
repo diffdriver && printf '*.txt diff=conv\n' >.gitattributes && git config diff.conv.command "$(hit diffdriver); true"
repo infoattr && printf '*.txt diff=conv\n' >.git/info/attributes && git config diff.conv.textconv "$(hit infoattr); cat"
repo clean && printf '*.txt filter=f\n' >.gitattributes && git config filter.f.clean "$(hit clean); cat"
repo process && printf '*.txt filter=f\n' >.gitattributes && git config filter.f.process "$(hit process); false"
repo hooks && git checkout -q a.txt && touch -d 2001-01-01 a.txt && mkdir h && program h/post-index-change hooks && git config core.hooksPath h
repo hook && git checkout -q a.txt && touch -d 2001-01-01 a.txt && program .git/hooks/post-index-change hook
repo gpg && git config gpg.program "$W/gpg/g" && program g gpg 1 && git config log.showSignature true
signed=$({ git cat-file commit HEAD | sed '/^$/q' | sed '/^$/d'; printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n'; } | git hash-object -t commit -w --stdin)
git update-ref refs/heads/main "$signed"
repo sshsig && git config gpg.ssh.program "$W/sshsig/g" && program g sshsig 1
git config gpg.ssh.allowedSignersFile "$W/sshsig/a.txt"
signed=$({ git cat-file commit HEAD | sed '/^$/q' | sed '/^$/d'; printf 'gpgsig -----BEGIN SSH SIGNATURE-----\n x\n -----END SSH SIGNATURE-----\n\nsigned\n'; } | git hash-object -t commit -w --stdin)
git update-ref refs/heads/main "$signed"
repo include && printf '[core]\n\tfsmonitor = %s; false\n' "$(hit include)" >settings && git config include.path ../settings
repo includeif && printf '[core]\n\tfsmonitor = %s; false\n' "$(hit includeif)" >settings && git config 'includeIf.onbranch:main.path' ../settings
repo elsewhere && git config core.fsmonitor "$(hit gitfile); false"
mkdir "$work/gitfile" && printf 'gitdir: ../elsewhere/.git\n' >"$work/gitfile/.git" && cp "$work/elsewhere/a.txt" "$work/gitfile/"
ln -s elsewhere "$work/gitlink"
repo linkedgit && mv .git ../dotgit && ln -s ../dotgit .git && git config core.fsmonitor "$(hit linkedgit); false"
git init -q --bare "$work/bare" && cd / && printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s/bare\n\tfsmonitor = %s; false\n' "$W" "$(hit bare)" >"$work/bare/config"
repo module && cp -a "$work/elsewhere" sub && git -C sub config core.fsmonitor "$(hit module); false" && git -c core.fsmonitor=false add sub 2>/dev/null && git commit -qm sub
repo worktree && git config extensions.worktreeConfig true && printf '[core]\n\tfsmonitor = %s; false\n' "$(hit worktree)" >.git/config.worktree
repo commondir && mkdir gd && cp .git/HEAD .git/index gd/ && printf '../.git\n' >gd/commondir && git config core.fsmonitor "$(hit commondir); false" && mkdir in && printf 'gitdir: ../gd\n' >in/.git
repo ssh && git config core.sshCommand "$(hit ssh); false" && git remote add origin ssh://x.example/y
repo ext && git config protocol.ext.allow always && git remote add origin "ext::sh -c touch% /hits/ext"
repo upload && git remote add origin "$W/honest" && git config remote.origin.uploadpack "$(hit upload); false"
repo promisor && blob=$(git rev-parse HEAD~1:a.txt) && rm -f ".git/objects/${blob:0:2}/${blob:2}"
git config core.repositoryformatversion 1 && git config extensions.partialClone origin && git remote add origin "$W/honest"
git config remote.origin.promisor true && git config remote.origin.uploadpack "$(hit promisor); false"
repo alias && git config alias.st "!$(hit alias)" && git config alias.status "!$(hit alias)" && git config alias.lg "!$(hit alias)"
repo tar && git config tar.evil.command "$(hit tar); cat"
repo manual && git config man.viewer evil && git config man.evil.cmd "$(hit manual)" && git config help.format man
repo merge && printf '*.txt merge=m\n' >.gitattributes && git add -A && git commit -qm three && git config merge.m.driver "$(hit merge)"
git checkout -q -b other HEAD~1 && printf 'other\n' >a.txt && git commit -qam other && git checkout -q main
repo trailer && git config trailer.x.command "$(hit trailer)" && git config trailer.x.key X
# Settings that show files of elsewhere instead of running something.
repo lookout && empty=$(git hash-object -w --stdin </dev/null) && git update-index --add --cacheinfo "100644,$empty,.ssh/id_rsa" && git config core.worktree /home/agent
repo outlook && empty=$(git hash-object -w --stdin </dev/null) && git update-index --add --cacheinfo "100644,$empty,etc/shadow" && git config core.worktree /

# --- rust
crate() { mkdir -p "$work/$1/src" && cd "$work/$1" && printf '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml && printf 'fn main() {}\n' >src/main.rs; }
toolchain() { mkdir -p tc/bin tc/lib && for name in cargo rustc rustdoc rustfmt; do program "tc/bin/$name" "$1"; done; }
crate toolchain && toolchain toolchain && printf '[toolchain]\npath = "%s/toolchain/tc"\n' "$W" >rust-toolchain.toml
crate toolchain-old && toolchain toolchain-old && printf '[toolchain]\npath = "%s/toolchain-old/tc"\n' "$W" >rust-toolchain
crate rustc && mkdir .cargo && program e rustc 1 && printf '[build]\nrustc = "%s/rustc/e"\n' "$W" >.cargo/config.toml
crate wrapper && mkdir .cargo && program e wrapper 1 && printf '[build]\nrustc-wrapper = "%s/wrapper/e"\n' "$W" >.cargo/config.toml
crate workspace-wrapper && mkdir .cargo && program e workspace-wrapper 1 && printf '[build]\nrustc-workspace-wrapper = "%s/workspace-wrapper/e"\n' "$W" >.cargo/config.toml
crate config-old && mkdir .cargo && program e config-old 1 && printf '[build]\nrustc = "%s/config-old/e"\n' "$W" >.cargo/config
crate cargo-alias && mkdir .cargo && printf 'fn main() { std::fs::write("/hits/cargo-alias", "").unwrap(); }\n' >src/main.rs && printf '[alias]\nx = "run --offline"\nlist = "run --offline"\n' >.cargo/config.toml
crate build && printf 'fn main() { std::fs::write("/hits/build", "").unwrap(); }\n' >build.rs
crate inner && mkdir -p deep/.cargo deep/src && cp Cargo.toml deep/ && cp src/main.rs deep/src/ && program e inner 1 && printf '[build]\nrustc = "%s/inner/e"\n' "$W" >deep/.cargo/config.toml

# --- node
package() { mkdir -p "$work/$1" && cd "$work/$1" && printf '{"name":"x","version":"1.0.0","scripts":{"test":"node -e 0","prepack":"touch /hits/%s","version":"touch /hits/%s"}}\n' "${2:-$1}" "${2:-$1}" >package.json; }
package npm
package npm-shell npm-shell && program e npm-shell && printf 'script-shell=%s/npm-shell/e\n' "$W" >.npmrc
package npm-node && printf "require('fs').writeFileSync('/hits/npm-node', '')\n" >e.js && printf 'node-options=--require %s/npm-node/e.js\n' "$W" >.npmrc
package npm-git && program e npm-git 1 && printf 'git=%s/npm-git/e\n' "$W" >.npmrc && printf '{"name":"x","version":"1.0.0","dependencies":{"y":"git+file:///nowhere/y.git"}}\n' >package.json

# --- make, maven, python, kubectl
mkdir "$work/make" && printf 'X := $(shell touch /hits/make)\nall:\n\t@true\n' >"$work/make/Makefile" && cp "$work/make/Makefile" "$work/make/x.mk"
mkdir -p "$work/mvn-jvm/.mvn" && printf -- '-Xlog:gc:file=/hits/mvn-jvm\n' >"$work/mvn-jvm/.mvn/jvm.config"
mkdir -p "$work/python/json" "$work/kube"
cd "$work/python" && for file in json/__init__.py json/tool.py sitecustomize.py usercustomize.py pip.py this.py; do printf "open('/hits/python', 'w')\n" >"$file"; done
printf '{}\n' >x.json
cat >"$work/kube/kc" <<END
{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
"clusters":[{"name":"x","cluster":{"server":"https://127.0.0.1:1"}}],
"users":[{"name":"x","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"touch","args":["/hits/kube"],"interactiveMode":"Never"}}}]}
END

# --- programs of well-known names, for PATH and for the current folder
mkdir "$work/bin" && for name in ls cat git python3 node npm cargo make head grep kubectl-evil cargo-evil git-evil evil lesspipe; do program "$work/bin/$name" "bin"; done

# --- for variables that name a file
mkdir -p "$work/fakehome/.config/git" "$work/perl" "$work/fakejdk/bin" "$work/fakehome/toolchains"
printf '[core]\n\tfsmonitor = %s; false\n' "$(hit variable)" | tee "$work/fakehome/.gitconfig" >"$work/fakehome/.config/git/config"
printf '[build]\nrustc = "%s/rustc/e"\n' "$W" >"$work/fakehome/config.toml"
program "$work/fakejdk/bin/java" variable && printf 'touch /hits/variable\n' >"$work/evil.sh"
printf 'package evil; system("touch /hits/variable"); 1;\n' >"$work/perl/evil.pm" && printf -- '--pre=%s/bin/evil\n' "$W" >"$work/rgrc"

# --- file names
mkdir -p "$work/names" "$work/options" "$work/arith" && cd "$work/names"
printf 'x\n' >plain.txt
printf 'x\n' >'a[$(touch HIT)]'
printf 'x\n' >'$(touch HIT1)'
printf 'x\n' >'`touch HIT2`'
printf 'x\n' >'x; touch HIT3'
printf 'x\n' >$'line\ntouch HIT4'
printf 'x\n' >"quote' ; touch HIT5 ; '"
printf 'x\n' >'e*'
printf 'a[$(touch HIT6)]\n' >subscript.txt
printf '1\n2\n' >numbers.txt
cd "$work/arith" && printf 'a[$(touch HIT)]\n' >'a[$(touch HIT)]' && printf 'x[$(touch HIT7)]+1\n' >b
cd "$work/options" && ln -s /home/agent/.ssh k && ln -s /home/agent/.ssh/id_rsa l && printf 'zz\n' >z
for name in -R -oHIT8 --files0-from=l --pre=e -fl -exec -delete; do printf 'x\n' >"./$name"; done && program e options

# --- links that lead out
cd "$work" && ln -s /home/agent/.ssh keys && ln -s /home/agent/.ssh/id_rsa key && ln -s .. up && ln -s /etc etc && ln -s /proc/self self
ln -s fsmonitor link && ln -s /home/agent/other/.env settings.txt && mkdir deep && ln -s ../../.aws deep/cloud && ln -s /home/agent/.local/share/countersign deep/data
ln -s key chain && ln -s /etc/shadow deep/list.txt
printf 'hello\n' >notes.txt && printf 'fsmonitor\nhonest\n' >folders.txt && printf '/home/agent/.ssh/id_rsa\n' >paths.txt && printf 'TOKEN=1\n' >example.txt
mkdir -p sub/inner && printf 'x\n' >sub/inner/x.txt
# A folder with a word that is an option, one with a blank, one that begins like an honest one.
cp -a fsmonitor 'with blank' && cp -a fsmonitor -- -P && cp -a fsmonitor other

rm -rf "$template/nobody"
chown -R 1000:1000 "$home"
